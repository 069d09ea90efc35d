// The example workload "orders" in C. The same generator stands beside it in Go,
// AssemblyScript and Rust, and the golden files of the folder above prove that
// all four give the same stream.
#define LOADSTONE_ROWS
#include "loadstone.h"

// The statements, in the order of the manifest; batches name them by this number.
enum { BY_ID, FOLLOWING, ADD, OPEN, PAY };

#define SHARE(name, title, about, value) \
	"\"" name "\":{\"type\":\"number\",\"title\":\"" title "\",\"description\":\"" about "\",\"minimum\":0,\"maximum\":1,\"default\":" value "}"
#define COUNT(name, title, about, most, value) \
	"\"" name "\":{\"type\":\"integer\",\"title\":\"" title "\",\"description\":\"" about "\",\"minimum\":0,\"maximum\":" most ",\"default\":" value "}"

void loadstone_describe(ls_out *out) {
	ls_put(out, "{\"kind\":\"workload\",\"name\":\"orders\",\"version\":\"1.0.0\",\"title\":\"Orders\",\"author\":\"Loadstone\","
		"\"description\":\"Looks orders up, lists them, adds some and pays some, in a transaction.\","
		"\"parameters\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
		SHARE("pay", "Share of payments", "How many of the operations are payments: transactions that read an order and change it.", "0.1") ","
		SHARE("list", "Share of lists", "How many of the operations read twenty orders in a row.", "0.1") ","
		SHARE("add", "Share of new orders", "How many of the operations add an order. The rest look one up.", "0.1") ","
		SHARE("rollback", "Share of rollbacks", "How many of the payments are undone.", "0.01") ","
		"\"keys\":{\"type\":\"string\",\"title\":\"Keys\",\"description\":\"Whether some orders are wanted more than others.\","
			"\"enum\":[\"zipfian\",\"uniform\"],\"default\":\"zipfian\"},"
		"\"theta\":{\"type\":\"number\",\"title\":\"Skew\",\"description\":\"The exponent of the zipfian distribution.\","
			"\"minimum\":0,\"maximum\":5,\"default\":0.99},"
		COUNT("note_length", "Length of notes", "The most characters that a note has.", "200", "40") ","
		COUNT("pause_us", "Pause", "Think time before each operation, in microseconds.", "60000000", "0")
		"}},");
	ls_put(out, "\"tables\":[{\"name\":\"orders\",\"key\":[\"id\"],\"columns\":[\"id i64\",\"customer i64\",\"total f64\","
		"{\"name\":\"note\",\"type\":\"text\",\"nullable\":true,\"db_type\":{\"postgres\":\"varchar(200)\"}},"
		"\"paid bool\",\"ordered_at timestamp\",\"receipt bytes\"]}],");
	// A bind that is a word is a column of the table. The adapter writes the SQL of three statements …
	ls_put(out, "\"statements\":["
		"{\"id\":\"order by id\",\"kind\":\"POINT_LOOKUP\",\"table\":\"orders\",\"binds\":[\"id\"],\"columns\":[\"customer\",\"total\",\"note\"]},"
		"{\"id\":\"orders from id\",\"kind\":\"RANGE_SCAN\",\"table\":\"orders\",\"binds\":[\"id\"],\"columns\":[\"id\",\"total\"],\"limit\":20},"
		"{\"id\":\"add order\",\"kind\":\"INSERT\",\"table\":\"orders\",\"writes\":true,"
			"\"binds\":[\"id\",\"customer\",\"total\",\"note\",\"paid\",\"ordered_at\",\"receipt\"]},"
		// … and two are the plugin's own.
		"{\"id\":\"open payment\",\"kind\":\"POINT_LOOKUP\",\"table\":\"orders\",\"binds\":[\"id\"],\"columns\":[\"id\",\"total\"],"
			"\"transaction\":\"payment\",\"sql\":{\"postgres\":\"SELECT id, total FROM {table} WHERE id = $1 FOR UPDATE\"}},"
		"{\"id\":\"pay order\",\"kind\":\"UPDATE\",\"table\":\"orders\",\"writes\":true,\"binds\":[\"note\",\"total\",\"id\"],"
			"\"sql\":{\"postgres\":\"UPDATE {table} SET paid = true, note = $1, total = $2 WHERE id = $3\"}}]}");
}

static void note(ls_batch *b, ls_rand *r, int64_t length) {
	uint32_t n = (uint32_t)ls_between(r, 0, length);
	ls_letters(r, ls_text_space(b, n), n);
}

// order writes the columns of one order.
static void order(ls_batch *b, ls_rand *r, int64_t id, int64_t note_length) {
	const int64_t year_2024 = 1704067200000000, year_micros = 31536000000000;
	ls_i64(b, id);
	ls_i64(b, ls_between(r, 1, 1000));
	ls_f64(b, (double)ls_between(r, 100, 100000) / 100);
	if (ls_below(r, 8) == 0)
		ls_null(b);
	else
		note(b, r, note_length);
	ls_bool(b, ls_below(r, 2) == 1);
	ls_timestamp(b, year_2024 + ls_below(r, year_micros));
	ls_noise(r, ls_bytes_space(b, 16), 16);
}

// What row n holds depends on the parameters and n alone.
int loadstone_rows(ls_batch *batch, const ls_json *params, int table, int64_t first, int max) {
	(void)table;
	int64_t note_length = ls_int(ls_get(params, "note_length"), 40);
	ls_rand r;
	for (int64_t id = first + 1; id <= first + max; id++) {
		ls_seed(&r, 1, id);
		ls_row(batch);
		order(batch, &r, id, note_length);
	}
	return LS_OK;
}

static struct {
	ls_rand rand;
	bool uniform, paused;
	ls_zipf hot;
	ls_scramble place;
	int64_t lowest, keys, next, step, note_length, pause;
	double pay, list, add, rollback;
} s;

// The stream may depend on the request and on nothing else.
int loadstone_open(const ls_request *request) {
	ls_table t = ls_table_of(ls_at(request->tables, 0));
	if (!t.has_range) return ls_fail("the table of orders is empty: have it loaded with target.prepare");
	const ls_json *p = request->params;
	ls_seed(&s.rand, request->seed, request->key_slot);
	s.paused = false;
	s.lowest = t.key_min;
	s.keys = t.key_max - t.key_min + 1;
	// No two streams of a run have the same slot, so new keys never collide.
	s.next = t.key_max + 1 + request->key_slot;
	s.step = request->key_slots;
	s.pay = ls_float(ls_get(p, "pay"), 0);
	s.list = ls_float(ls_get(p, "list"), 0);
	s.add = ls_float(ls_get(p, "add"), 0);
	s.rollback = ls_float(ls_get(p, "rollback"), 0);
	s.note_length = ls_int(ls_get(p, "note_length"), 0);
	s.pause = ls_int(ls_get(p, "pause_us"), 0);
	s.uniform = ls_is(ls_string(ls_get(p, "keys")), "uniform");
	if (!s.uniform) {
		ls_zipf_init(&s.hot, s.keys, ls_float(ls_get(p, "theta"), 0));
		ls_scramble_init(&s.place, s.keys);
	}
	return LS_OK;
}

static int64_t key(void) {
	if (s.uniform) return s.lowest + ls_below(&s.rand, s.keys);
	return s.lowest + ls_scramble_at(&s.place, ls_zipf_next(&s.hot, &s.rand));
}

// Writes operations while there is room; the last transaction may end past it.
int loadstone_fill(ls_batch *b, int max) {
	while (ls_len(b) < max) {
		if (s.pause > 0 && !s.paused) {
			ls_delay(b, s.pause);
			s.paused = true;
			continue;
		}
		s.paused = false;
		double x = ls_unit(&s.rand);
		if (x < s.pay) {
			ls_begin(b);
			ls_op(b, OPEN);
			ls_i64(b, key());
			uint8_t opened = ls_last(b);
			ls_op(b, PAY);
			note(b, &s.rand, s.note_length);
			ls_ref(b, opened, 1);
			ls_ref(b, opened, 0);
			if (ls_unit(&s.rand) < s.rollback)
				ls_rollback(b);
			else
				ls_commit(b);
		} else if (x < s.pay + s.list) {
			ls_op(b, FOLLOWING);
			ls_i64(b, key());
		} else if (x < s.pay + s.list + s.add) {
			ls_op(b, ADD);
			order(b, &s.rand, s.next, s.note_length);
			s.next += s.step;
		} else {
			ls_op(b, BY_ID);
			ls_i64(b, key());
		}
	}
	return LS_OK;
}
