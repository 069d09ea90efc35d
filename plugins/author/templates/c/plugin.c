// {{name}}: a workload plugin for Loadstone.
#define LOADSTONE_ROWS
#include "loadstone.h"

// The statements, in the order of the manifest; batches name them by this number.
enum { READ, ADD };

void loadstone_describe(ls_out *out) {
	ls_put(out, "{\"kind\": \"workload\", \"name\": \"{{name}}\", \"version\": \"1.0.0\", \"description\": \"Reads items and adds new ones.\","
		"\"parameters\": {\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
			"\"add\": {\"type\": \"number\", \"title\": \"Share of new items\", \"minimum\": 0, \"maximum\": 1, \"default\": 0.1}}},"
		"\"tables\": [{\"name\": \"items\", \"key\": [\"id\"], \"columns\": [\"id i64\", \"label text\"]}],"
		// Without SQL of their own, the adapter of the table type writes it.
		"\"statements\": ["
			"{\"id\": \"read item\", \"kind\": \"POINT_LOOKUP\", \"table\": \"items\", \"binds\": [\"id\"], \"columns\": [\"label\"]},"
			"{\"id\": \"add item\", \"kind\": \"INSERT\", \"table\": \"items\", \"writes\": true, \"binds\": [\"id\", \"label\"]}]}");
}

// item writes the columns of one item.
static void item(ls_batch *b, ls_rand *r, int64_t id) {
	uint32_t n = (uint32_t)ls_between(r, 5, 20);
	ls_i64(b, id);
	ls_letters(r, ls_text_space(b, n), n);
}

// Sample rows: what a row holds depends on its number alone.
int loadstone_rows(ls_batch *batch, const ls_json *params, int table, int64_t first, int max) {
	(void)params, (void)table;
	for (int64_t id = first + 1; id <= first + max; id++) {
		ls_rand r;
		ls_seed(&r, 1, id);
		ls_row(batch);
		item(batch, &r, id);
	}
	return LS_OK;
}

static ls_rand random_source;
static ls_zipf hot;
static int64_t lowest, next, step;
static double share_of_added;

// Starts a stream.
int loadstone_open(const ls_request *request) {
	ls_table t = ls_table_of(ls_at(request->tables, 0));
	if (!t.has_range) return ls_fail("the table of items is empty: have it loaded with target.prepare");
	ls_seed(&random_source, request->seed, request->key_slot);
	ls_zipf_init(&hot, t.key_max - t.key_min + 1, 0.99);
	lowest = t.key_min;
	// No two streams of a run have the same slot, so new keys never collide.
	next = t.key_max + 1 + request->key_slot;
	step = request->key_slots;
	share_of_added = ls_float(ls_get(request->params, "add"), 0);
	return LS_OK;
}

// Writes the next operations.
int loadstone_fill(ls_batch *b, int max) {
	while (ls_len(b) < max) {
		if (ls_unit(&random_source) < share_of_added) {
			ls_op(b, ADD);
			item(b, &random_source, next);
			next += step;
		} else {
			ls_op(b, READ);
			ls_i64(b, lowest + ls_zipf_next(&hot, &random_source));
		}
	}
	return LS_OK;
}
