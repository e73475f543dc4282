/*
 * Normalisation Form C: a few cases that say why they are here, Unicode's own
 * test file where it is installed, and random text against the properties that
 * any normalisation has.
 */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "nfc.h"
#include "tap.h"
#include "utf8.h"

/* Does from, of n bytes, become exactly want? */
static int
becomes(const char *from, size_t n, const char *want, size_t n_want)
{
	struct err err = { 0 };
	char *out;
	size_t len;
	int same;

	if (nfc(from, n, &out, &len, &err) < 0)
		return 0;
	same = len == n_want && !memcmp(out, want, len);
	free(out);
	return same;
}

static void
test_sample(void)
{
	static const struct {
		const char *from, *want, *why;
	} t[] = {
		{ "", "", "nothing" },
		{ "plain text\n", "plain text\n", "ASCII" },
		{ "e\u0301", "\u00E9", "a letter and its accent" },
		{ "\u00E9", "\u00E9", "composed already" },
		{ "ae\u0301e\u0300b", "a\u00E9\u00E8b", "amid others" },
		{ "\u0301e", "\u0301e", "an accent in front" },
		{ "e\u0301\u0301", "\u00E9\u0301", "a second one is left" },
		{ "a\u0323\u0302", "\u1EAD", "two accents on one" },
		{ "a\u0302\u0323", "\u1EAD", "in the other order" },
		{ "D\u0307\u0323", "\u1E0C\u0307", "put into order" },
		{ "D\u031B\u0323\u0307", "\u1E0C\u031B\u0307",
		    "composes past a mark of another class" },
		{ "e\u0304\u0300", "\u1E15", "step by step" },
		{ "e\u0300\u0304", "\u00E8\u0304", "blocked by its own class" },
		{ "\u1E0A\u0323", "\u1E0C\u0307", "taken apart first" },
		{ "\u212B", "\u00C5", "Angstrom: one for one" },
		{ "\u2126", "\u03A9", "Ohm" },
		{ "\uF900", "\u8C48", "a compatibility ideograph" },
		{ "\u0958", "\u0915\u093C", "excluded from composition" },
		{ "\u0344", "\u0308\u0301", "begins with a mark" },
		{ "\uFB01", "\uFB01", "compatibility forms stay" },
		{ "\u09C7\u09BE", "\u09CB", "two starters" },
		{ "\u09C7\u0334\u09BE", "\u09C7\u0334\u09BE",
		    "a mark between starters blocks" },
		{ "\u1100\u1161", "\uAC00", "Hangul LV" },
		{ "\u1100\u1161\u11A8", "\uAC01", "Hangul LVT" },
		{ "\uAC00\u11A8", "\uAC01", "LV and T" },
		{ "\uAC01\u11A8", "\uAC01\u11A8", "LVT and T" },
		{ "\u1100\uAC00", "\u1100\uAC00", "L and LV" },
		{ "\uAC00\u11A7", "\uAC00\u11A7", "U+11A7 is no T" },
		{ "\u1112\u1175\u11C2", "\uD7A3", "the last syllable" },
		{ "\U0001D15E", "\U0001D157\U0001D165", "longer composed" },
		{ "\U00011099\U000110BA", "\U0001109A", "beyond U+FFFF" },
		{ ">\u0338", "\u226F", "ASCII composes too" },
		{ "e\xFF\u0301", "e\xFF\u0301", "not across a bad byte" },
		{ "\xC3" "e\u0301\xE2\x82", "\xC3\u00E9\xE2\x82",
		    "bad bytes stay" },
		{ "e\u0301\xCC", "\u00E9\xCC", "cut off in a mark" },
	};

	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		ok(becomes(t[i].from, strlen(t[i].from), t[i].want,
		    strlen(t[i].want)), "%s", t[i].why);
	ok(becomes("e\0\xCC\x81", 4, "e\0\xCC\x81", 4), "NUL is a character");
}

/* A column of the test file as UTF-8; *p moves behind its semicolon. */
static size_t
column(char **p, char *out)
{
	size_t n = 0;

	while (**p && **p != ';')
		n += utf8_encode((uint32_t)strtoul(*p, p, 16), out + n);
	*p += **p == ';';
	return n;
}

/* c2 is the form of c1, c2 and c3, and c4 that of c4 and c5. */
static int
check_line(char *line)
{
	char c[6][256], *p = line;
	size_t n[6];

	for (int i = 1; i <= 5; i++)
		n[i] = column(&p, c[i]);
	for (int i = 1; i <= 3; i++)
		if (!becomes(c[i], n[i], c[2], n[2]))
			return 0;
	return becomes(c[4], n[4], c[4], n[4]) &&
	    becomes(c[5], n[5], c[4], n[4]);
}

static const char *
open_command(void)
{
	const char *plain = "/usr/share/unicode/NormalizationTest.txt";
	const char *packed = "/usr/share/unicode/NormalizationTest.txt.bz2";

	if (access(plain, R_OK) == 0)
		return "cat /usr/share/unicode/NormalizationTest.txt";
	if (access(packed, R_OK) == 0 && system("command -v bzip2 >/dev/null")
	    == 0)
		return "bzip2 -dc /usr/share/unicode/NormalizationTest.txt.bz2";
	return NULL;
}

/*
 * The test file.  What part 1 has no line for is the same in every form:
 * surrogates, which are no characters of UTF-8, and the others.
 */
static void
test_file(void)
{
	static unsigned char listed[0x110000];
	const char *name = "Unicode's test file", *cmd = open_command();
	char line[2048], one[4];
	unsigned long n = 0, bad = 0, part = 0;
	size_t len;
	FILE *f;

	if (!cmd || system("grep -q 'Version 15\\.0\\.0' "
	    "/usr/share/unicode/ReadMe.txt") != 0) {
		skip(name, "no NormalizationTest.txt of version 15.0.0 here");
		return;
	}
	f = popen(cmd, "r");
	while (f && fgets(line, sizeof line, f)) {
		if (line[0] == '@')
			part = strtoul(line + 5, NULL, 10);
		if (line[0] == '@' || line[0] == '#')
			continue;
		if (part == 1)
			listed[strtoul(line, NULL, 16)] = 1;
		n++;
		if (!check_line(line)) {
			printf("# %s", line);
			bad++;
		}
	}
	ok(f && pclose(f) == 0 && n > 18000 && bad == 0,
	    "%s: %lu lines, %lu wrong", name, n, bad);
	bad = 0;
	for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
		if (listed[cp] || (cp >= 0xD800 && cp <= 0xDFFF))
			continue;
		len = utf8_encode(cp, one);
		bad += !becomes(one, len, one, len);
	}
	ok(bad == 0, "characters it does not list are the same");
}

static uint32_t seed = 1;

static uint32_t
random_below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* Up to 40 characters, most of them from where there is much to do. */
static size_t
random_text(char *s)
{
	static const uint32_t from[] = { 'A', 0xC0, 0x300, 0x320, 0x1E00, 0x1100,
		0x1161, 0x11A7, 0xAC00, 0x9C0, 0x1D150 };
	size_t len = 0;

	for (uint32_t n = random_below(40); n > 0; n--) {
		uint32_t kind = random_below(sizeof from / sizeof *from + 1);

		if (kind == sizeof from / sizeof *from)
			s[len++] = (char)(0x80 + random_below(128));
		else
			len += utf8_encode(from[kind] + random_below(32),
			    s + len);
	}
	return len;
}

/* What is normalised stays, and between parts that ASCII ends nothing moves. */
static void
test_random(void)
{
	char s[512], *whole, *left, *right, *joined;
	size_t n, n_whole, n_left, n_right, at;
	struct err err = { 0 };
	int idle = 1, parts = 1;

	for (int i = 0; i < 3000; i++) {
		n = random_text(s);
		s[n++] = '-';
		at = n;
		n += random_text(s + n);
		if (at < n && (s[at] & 0xC0) == 0x80)
			s[at] = '+'; /* no mark for the dash by accident */
		if (nfc(s, n, &whole, &n_whole, &err) < 0 ||
		    nfc(s, at, &left, &n_left, &err) < 0 ||
		    nfc(s + at, n - at, &right, &n_right, &err) < 0)
			exit(99);
		joined = malloc(n_left + n_right + 1);
		if (!joined)
			exit(99);
		memcpy(joined, left, n_left);
		memcpy(joined + n_left, right, n_right);
		idle &= becomes(whole, n_whole, whole, n_whole);
		parts &= n_whole == n_left + n_right &&
		    !memcmp(whole, joined, n_whole);
		free(whole);
		free(left);
		free(right);
		free(joined);
	}
	ok(idle, "what is normalised stays so");
	ok(parts, "nothing composes with a dash");
}

/*
 * A million marks behind one letter, classes falling: sorting them by
 * exchanging neighbours would take hours.
 */
static void
test_long(void)
{
	enum { N = 500000 };
	char *s = malloc(1 + 4 * N), *want = malloc(2 + 4 * N), *p = want;

	if (!s || !want)
		exit(99);
	s[0] = 'e';
	p += utf8_encode(0x1EB9, p); /* e with the first of the dots below */
	for (size_t i = 0; i < N; i++) {
		utf8_encode(0x301, s + 1 + 2 * i);
		utf8_encode(0x323, s + 1 + 2 * (N + i));
	}
	for (size_t i = 1; i < N; i++)
		p += utf8_encode(0x323, p);
	/* U+1EB9 and U+0301 compose into nothing */
	for (size_t i = 0; i < N; i++)
		p += utf8_encode(0x301, p);
	ok(becomes(s, 1 + 4 * N, want, (size_t)(p - want)),
	    "a million marks in the wrong order");
	free(s);
	free(want);
}

/* The committed tables are what the script makes of Unicode's files. */
static void
test_tables(void)
{
	const char *name = "lib/nfc_data.h is up to date";

	if (access("/usr/share/unicode/UnicodeData.txt", R_OK) < 0 ||
	    access("/usr/share/unicode/CompositionExclusions.txt", R_OK) < 0) {
		skip(name, "no UnicodeData.txt here");
		return;
	}
	if (system("grep -q 'Version 15\\.0\\.0' "
	    "/usr/share/unicode/ReadMe.txt") != 0) {
		skip(name, "UnicodeData.txt is not of version 15.0.0");
		return;
	}
	ok(system("cd /usr/share/unicode && \"$OLDPWD\"/lib/nfc-gen "
	    "UnicodeData.txt CompositionExclusions.txt | "
	    "cmp - \"$OLDPWD\"/lib/nfc_data.h") == 0, "%s", name);
}

int
main(void)
{
	test_sample();
	test_file();
	test_random();
	test_long();
	test_tables();
	return tap_end();
}
