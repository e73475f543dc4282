/* The lines of the protocol: what is written can be read, the rest is not. */
#include "proto.h"

#include <stdlib.h>

#include "tap.h"

static char line[8192];

/* What a writer printed, without its LF. */
static FILE *out;
static char *text;
static size_t text_size;

static void
begin(void)
{
	out = open_memstream(&text, &text_size);
}

static const char *
end(void)
{
	fclose(out);
	snprintf(line, sizeof line, "%s", text);
	line[strcspn(line, "\n")] = '\0';
	free(text);
	return line;
}

static void
greetings(void)
{
	struct greeting g = { .arch = "llada", .model = "my model 100%.gguf",
		.quant = "Q4_K_M", .device = "cpu", .kernel = "avx2",
		.vocab = 126464, .mask = 126336, .eos = { 126081, 126348 },
		.n_eos = 2, .ctx = 4096, .threads = 4, .first = 1, .stats = 1 };
	struct greeting h;
	struct err err = { 0 };

	begin();
	greeting_write(out, &g, &err);
	is(end(),
	    "dllm-forward 1 arch=llada vocab=126464 mask=126336 "
	    "eos=126081,126348 ctx=4096 device=cpu kernel=avx2 threads=4 "
	    "first=1 want=logits,stats quant=Q4_K_M model=my%20model%20100%25."
	    "gguf",
	    "a greeting is written");
	ok(greeting_parse(&h, line, strlen(line), &err) == 0 &&
	        !memcmp(&g, &h, sizeof g),
	    "and read");
	strcpy(line, "dllm-forward 1 mask=3 vocab=8 new=thing x");
	ok(greeting_parse(&h, line, strlen(line), &err) == 0 && h.mask == 3 &&
	        !h.stats,
	    "unknown words are ignored");
}

static void
no_greeting(const char *s, const char *want)
{
	struct greeting g;
	struct err err = { 0 };

	ok(greeting_parse(&g, s, strlen(s), &err) < 0, "refused: %s", s);
	is(err.msg, want, want);
}

static void
bad_greetings(void)
{
	no_greeting("", "not a greeting of a forward process");
	no_greeting("hello", "not a greeting of a forward process");
	no_greeting("dllm-forward", "not a greeting of a forward process");
	no_greeting("dllm-forward x", "not a greeting of a forward process");
	no_greeting("dllm-forward 2 vocab=5 mask=1",
	    "protocol version 2 is not supported (this is 1)");
	no_greeting("dllm-forward 1 mask=1", "no vocab= in the greeting");
	no_greeting("dllm-forward 1 vocab=5", "no mask= in the greeting");
	no_greeting("dllm-forward 1 vocab=0 mask=1",
	    "bad vocab= in the greeting");
	no_greeting("dllm-forward 1 vocab=99999999999999999999 mask=1",
	    "bad vocab= in the greeting");
	no_greeting("dllm-forward 1 vocab=5 mask=5",
	    "mask=5 is outside the vocabulary of 5");
	no_greeting("dllm-forward 1 vocab=5 mask=1 eos=5",
	    "bad eos= in the greeting");
	no_greeting("dllm-forward 1 vocab=5 mask=1 eos=1,,2",
	    "bad eos= in the greeting");
	no_greeting("dllm-forward 1 vocab=99 mask=1 "
	            "eos=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
	    "bad eos= in the greeting");
	no_greeting("dllm-forward 1 vocab=5 mask=1 first=2",
	    "bad first= in the greeting");
	no_greeting("dllm-forward 1 vocab=5 mask=-1",
	    "bad mask= in the greeting");
}

static void
requests(void)
{
	struct request q = { .seq = 7, .want = WANT_STATS,
		.stats = { .algorithm = ALG_ENTROPY, .greedy = 1,
		    .seed = UINT64_MAX, .step = 12, .temperature = 0.2,
		    .top_p = 0.95, .top_k = 40, .ban = { 5, 6 }, .n_ban = 2,
		    .demote = { 9 }, .n_demote = 1 } };
	struct request r = { 0 };
	struct err err = { 0 };
	int32_t ids[] = { 1, 22, 333 };

	tokens_append(&q.ids, ids, 3, &err);
	for (uint64_t i = 0; i < 10; i++)
		if (i != 3 && i != 4)
			ranges_add(&q.rows, i, &err);
	begin();
	request_write(out, &q, &err);
	is(end(),
	    "forward 7 rows=0:3,5:5 want=stats algorithm=entropy greedy=1 "
	    "seed=18446744073709551615 step=12 temperature=0.2 top-p=0.95 "
	    "top-k=40 ban=5,6 demote=9 : 1 22 333",
	    "a request is written");
	ok(request_parse(&r, line, strlen(line), &err) == 0, "and read");
	ok(r.seq == 7 && r.want == WANT_STATS && r.rows.n == 2 &&
	        r.rows.total == 8 && r.rows.r[1].from == 5 &&
	        r.rows.r[1].count == 5 && r.ids.n == 3 && r.ids.id[2] == 333,
	    "the same rows and ids");
	ok(!memcmp(&q.stats, &r.stats, sizeof q.stats),
	    "the same parameters, bit for bit");
	q.stats.temperature = 1.0 / 3;
	begin();
	request_write(out, &q, &err);
	end();
	request_parse(&r, line, strlen(line), &err);
	ok(r.stats.temperature == 1.0 / 3, "any number survives");
	strcpy(line, "forward 0 rows=2:1 : ");
	ok(request_parse(&r, line, strlen(line), &err) == 0 && r.ids.n == 0 &&
	        r.want == WANT_LOGITS && r.stats.top_p == 1,
	    "defaults: logits; no ids");
	request_free(&q);
	request_free(&r);
}

static void
no_request(const char *s, uint64_t seq, const char *want)
{
	struct request q = { 0 };
	struct err err = { 0 };

	ok(request_parse(&q, s, strlen(s), &err) < 0 && q.seq == seq,
	    "refused: %s", s);
	is(err.msg, want, want);
	request_free(&q);
}

static void
bad_requests(void)
{
	no_request("", 0, "a request begins with 'forward SEQ'");
	no_request("forward", 0, "a request begins with 'forward SEQ'");
	no_request("forward -1 rows=1:1 : 1", 0,
	    "a request begins with 'forward SEQ'");
	no_request("backward 1 rows=1:1 : 1", 0,
	    "a request begins with 'forward SEQ'");
	no_request("forward 3", 3, "no ' : ' and ids in the request");
	no_request("forward 3 rows=1:1", 3, "no ' : ' and ids in the request");
	no_request("forward 3 : 1", 3, "no rows= in the request");
	no_request("forward 3 rows=1:0 : 1", 3, "bad range of rows '1:0'");
	no_request("forward 3 rows=1 : 1", 3, "bad range of rows '1'");
	no_request("forward 3 rows= : 1", 3, "bad range of rows ''");
	no_request("forward 3 rows=1:1, : 1", 3, "bad range of rows ''");
	no_request("forward 3 rows=2147483647:2 : 1", 3,
	    "bad range of rows '2147483647:2'");
	no_request("forward 3 rows=4:1,2:1 : 1", 3,
	    "rows must ascend: '2:1'");
	no_request("forward 3 rows=4:3,6:1 : 1", 3, "rows must ascend: '6:1'");
	no_request("forward 3 rows=1:1 cache=1 : 1", 3,
	    "unknown key in the request: 'cache=1'");
	no_request("forward 3 rows=1:1  : 1", 3,
	    "unknown key in the request: ''");
	no_request("forward 3 rows=1:1 want=all : 1", 3,
	    "want= is logits or stats");
	no_request("forward 3 rows=1:1 temperature=nan : 1", 3,
	    "bad value in the request: 'temperature=nan'");
	no_request("forward 3 rows=1:1 temperature=-1 : 1", 3,
	    "bad value in the request: 'temperature=-1'");
	no_request("forward 3 rows=1:1 top-p=1.5 : 1", 3,
	    "bad value in the request: 'top-p=1.5'");
	no_request("forward 3 rows=1:1 algorithm=best : 1", 3,
	    "bad value in the request: 'algorithm=best'");
	no_request("forward 3 rows=1:1 ban=1,x : 1", 3,
	    "bad value in the request: 'ban=1,x'");
	no_request("forward 3 rows=1:1 greedy=2 : 1", 3,
	    "bad value in the request: 'greedy=2'");
	no_request("forward 3 rows=1:1 : 1 01", 3,
	    "ids: byte 3: not a token id");
}

static void
ranges(void)
{
	struct ranges r = { 0 };
	struct err err = { 0 };

	ok(ranges_parse(&r, "3,5:2,9", 7, 1, &err) == 0 && r.n == 3 &&
	        r.total == 4,
	    "single positions where they are allowed");
	ok(ranges_parse(&r, "3:1,4:2", 7, 0, &err) == 0 && r.n == 1 &&
	        r.total == 3,
	    "neighbours join");
	ranges_free(&r);
}

static void
replies(void)
{
	struct reply r;
	struct err err = { 0 };

	begin();
	reply_ok_write(out, 5, 3, 4096, 1.25);
	is(end(), "ok 5 rows=3 bytes=4096 ms=1.250", "an ok is written");
	ok(reply_parse(&r, line, strlen(line), &err) == 0 && r.ok &&
	        r.seq == 5 && r.rows == 3 && r.bytes == 4096 && r.ms == 1.25,
	    "and read");
	begin();
	reply_error_write(out, 6, "too long");
	is(end(), "error 6 too long", "an error is written");
	ok(reply_parse(&r, line, strlen(line), &err) == 0 && !r.ok &&
	        r.seq == 6 && !strcmp(r.text, "too long"),
	    "and read");
	memset(line, 'x', sizeof line);
	memcpy(line, "error 1 ", 8);
	ok(reply_parse(&r, line, sizeof line, &err) == 0 &&
	        strlen(r.text) == PROTO_ERROR - 1,
	    "a long text is cut");
	ok(reply_parse(&r, "ok 5 new=1 rows=3", 17, &err) == 0,
	    "unknown keys are ignored");
}

static void
no_reply(const char *s, const char *want)
{
	struct reply r;
	struct err err = { 0 };

	ok(reply_parse(&r, s, strlen(s), &err) < 0, "refused: %s", s);
	is(err.msg, want, want);
}

static void
bad_replies(void)
{
	no_reply("", "an empty line instead of a reply");
	no_reply("okay 1 rows=1", "not a reply: 'okay 1 rows=1'");
	no_reply("ok", "a reply without a sequence number");
	no_reply("ok x rows=1", "a reply without a sequence number");
	no_reply("ok 1", "no rows= in a reply");
	no_reply("ok 1 rows=-1", "bad rows= in a reply");
	no_reply("ok 1 rows=1 bytes=1e9", "bad bytes= in a reply");
	no_reply("ok 1 rows=1 ms=inf", "bad ms= in a reply");
}

static void
rows(void)
{
	struct stats_row a = { .pos = 3, .id = 77, .logit = -1.1f,
		.p = 0.3f, .margin = 0.1f, .negent = -2.7f };
	struct stats_row b;
	struct err err = { 0 };

	begin();
	stats_row_write(out, &a);
	end();
	ok(stats_row_parse(&b, line, strlen(line), &err) == 0 &&
	        !memcmp(&a, &b, sizeof a),
	    "a row survives bit for bit: %s", line);
}

static void
no_row(const char *s, const char *want)
{
	struct stats_row r;
	struct err err = { 0 };

	ok(stats_row_parse(&r, s, strlen(s), &err) < 0, "refused: %s", s);
	is(err.msg, want, want);
}

static void
bad_rows(void)
{
	no_row("", "not a row of statistics: ''");
	no_row("row", "not a row of statistics: 'row'");
	no_row("row x id=1", "not a row of statistics: 'row x id=1'");
	no_row("row 1 id=1 logit=0 p=0 margin=0", "row 1: a value is missing");
	no_row("row 1 logit=0 p=0 margin=0 negent=0",
	    "row 1: a value is missing");
	no_row("row 1 id=1 logit=nan p=0 margin=0 negent=0",
	    "row 1: bad logit=");
	no_row("row 1 id=1 logit=1e39 p=0 margin=0 negent=0",
	    "row 1: bad logit=");
	no_row("row 1 id=-1 logit=0 p=0 margin=0 negent=0", "row 1: bad id=");
	no_row("row 1 id=1 logit=0 p=1.5 margin=0 negent=0",
	    "row 1: p or margin outside 0 to 1");
}

int
main(void)
{
	greetings();
	bad_greetings();
	requests();
	bad_requests();
	ranges();
	replies();
	bad_replies();
	rows();
	bad_rows();
	return tap_end();
}
