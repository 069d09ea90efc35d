// loadstone.h: the C SDK for Loadstone plugins. One header, no libc.
//
//	clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry,--stack-first -o my.wasm my.c
//
// Include it in the one source file of a plugin and define what it declares:
//
//	#include "loadstone.h"
//
//	void loadstone_describe(ls_out *out) { ls_put(out, "{\"kind\":\"workload\", …}"); }
//	int loadstone_open(const ls_request *request) { …; return LS_OK; }
//	int loadstone_fill(ls_batch *batch, int max) { …; return LS_OK; }
//
// and, announced by a #define before the #include, what else the plugin does:
//
//	LOADSTONE_ROWS     int loadstone_rows(ls_batch *, const ls_json *params, int table, int64_t first, int max);
//	LOADSTONE_CALL     int loadstone_call(ls_str op, const ls_json *request, ls_out *answer);
//	LOADSTONE_ADAPTER  the plugin is an adapter: LOADSTONE_CALL, and neither open nor fill
//
// A function that cannot do its work returns ls_fail("a sentence for the user").
// What a workload generates must depend on the document of loadstone_open alone;
// there is no clock, and ls_rand is the source of random numbers. The numbers and
// distributions are those of the Go, Rust and AssemblyScript SDKs, bit for bit.
//
// Memory: the plugin is single-threaded and has at most 32 MB. Buffers of the SDK
// grow by themselves; a plugin that runs out of memory is stopped and named.
#ifndef LOADSTONE_H
#define LOADSTONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The wire format; package sdk/abi explains it, and a test compares the two.
#define LS_ABI_VERSION 0x10000
#define LS_BATCH_VERSION 1
#define LS_TYPE_NULL 0
#define LS_TYPE_I64 1
#define LS_TYPE_F64 2
#define LS_TYPE_TEXT 3
#define LS_TYPE_BYTES 4
#define LS_TYPE_BOOL 5
#define LS_TYPE_TIMESTAMP 6
#define LS_TYPE_REF 7
#define LS_STATEMENT_BEGIN 0xFF00
#define LS_STATEMENT_COMMIT 0xFF01
#define LS_STATEMENT_ROLLBACK 0xFF02
#define LS_STATEMENT_DELAY 0xFF03
#define LS_FILL_ERROR (-1)
#define LS_MAX_BATCH_BYTES 8388608
#define LS_MAX_DOCUMENT 4194304
#define LS_HEADER_SIZE 8

// What a plugin's functions return.
#define LS_OK 0
#define LS_FAILED (-1)

// Levels of ls_log.
#define LS_LOG_DEBUG 0
#define LS_LOG_INFO 1
#define LS_LOG_WARNING 2
#define LS_LOG_ERROR 3

#define LS_INLINE static inline __attribute__((unused, always_inline))
#define LS_FN static __attribute__((unused))
#define LS_EXPORT(name) __attribute__((export_name(#name), used))

// ---- Memory -------------------------------------------------------------------

// The compiler calls these by name. They are weak: a libc that is linked wins.
__attribute__((weak, no_builtin("memcpy"))) void *memcpy(void *to, const void *from, size_t n) {
	unsigned char *t = to;
	const unsigned char *f = from;
	for (; n >= 8; n -= 8, t += 8, f += 8) __builtin_memcpy(t, f, 8);
	while (n--) *t++ = *f++;
	return to;
}
__attribute__((weak, no_builtin("memmove"))) void *memmove(void *to, const void *from, size_t n) {
	unsigned char *t = to;
	const unsigned char *f = from;
	if (t <= f)
		while (n--) *t++ = *f++;
	else
		while (n--) t[n] = f[n];
	return to;
}
__attribute__((weak, no_builtin("memset"))) void *memset(void *to, int c, size_t n) {
	unsigned char *t = to;
	while (n--) *t++ = (unsigned char)c;
	return to;
}
__attribute__((weak, no_builtin("memcmp"))) int memcmp(const void *a, const void *b, size_t n) {
	const unsigned char *x = a, *y = b;
	for (; n--; x++, y++)
		if (*x != *y) return *x < *y ? -1 : 1;
	return 0;
}

// ls_str is a text or bytes that somebody else owns, not terminated by zero.
typedef struct {
	const char *at;
	uint32_t len;
} ls_str;

// LS_STR makes an ls_str of a string literal.
#define LS_STR(literal) ((ls_str){(literal), sizeof(literal) - 1})

LS_FN uint32_t ls_length(const char *text) {
	uint32_t n = 0;
	while (text[n]) n++;
	return n;
}

// ls_is reports whether s is the given text.
LS_FN bool ls_is(ls_str s, const char *text) {
	uint32_t n = ls_length(text);
	return n == s.len && memcmp(s.at, text, n) == 0;
}

__attribute__((import_module("ls"), import_name("log"))) void ls_import_log(int32_t level, const char *at, uint32_t len);

// ls_log writes a line to the plugin's log: 1024 bytes at most, some lines a second.
LS_FN void ls_log(int32_t level, const char *line) { ls_import_log(level, line, ls_length(line)); }

// ls_panic ends the instance; the line is in the log.
LS_FN _Noreturn void ls_panic(const char *line) {
	ls_log(LS_LOG_ERROR, line);
	__builtin_trap();
}

extern unsigned char __heap_base;
static uintptr_t ls__top;
// Blocks of 2^(4+i) bytes that were freed.
static void *ls__free_blocks[28];

LS_FN uint32_t ls__class(uint32_t n) {
	uint32_t c = 0;
	while ((16u << c) < n) c++;
	return c;
}

// ls_new returns n bytes that are zero, aligned to 16. It does not return when memory has run out.
LS_FN void *ls_new(uint32_t n) {
	if (n > LS_MAX_BATCH_BYTES * 4u) ls_panic("the plugin asked for more memory than a plugin may have");
	uint32_t c = ls__class(n + 16);
	unsigned char *block = ls__free_blocks[c];
	uint32_t size = 16u << c;
	if (block) {
		ls__free_blocks[c] = *(void **)(block + 16);
		memset(block + 16, 0, size - 16);
	} else {
		if (!ls__top) ls__top = ((uintptr_t)&__heap_base + 15) & ~(uintptr_t)15;
		uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) << 16;
		if (size > have - ls__top) {
			uintptr_t pages = (size - (have - ls__top) + 0xffff) >> 16;
			if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) ls_panic("the plugin has used up its memory");
		}
		block = (unsigned char *)ls__top;
		ls__top += size;
	}
	*(uint32_t *)block = c;
	return block + 16;
}

// ls_free gives memory of ls_new back; NULL is fine.
LS_FN void ls_free(void *p) {
	if (!p) return;
	unsigned char *block = (unsigned char *)p - 16;
	uint32_t c = *(uint32_t *)block;
	*(void **)p = ls__free_blocks[c];
	ls__free_blocks[c] = block;
}

// ls_grow returns a block of at least n bytes that begins with the first len bytes of p, and frees p.
LS_FN void *ls_grow(void *p, uint32_t len, uint32_t n) {
	void *grown = ls_new(n);
	if (p) memcpy(grown, p, len);
	ls_free(p);
	return grown;
}

// ---- Errors -------------------------------------------------------------------

static char ls__error[2048];
static uint32_t ls__error_len;

// ls_fail_at keeps "message: detail" for the user and returns LS_FAILED.
LS_FN int ls_fail_at(const char *message, ls_str detail) {
	uint32_t n = 0;
	for (; message[n] && n < sizeof(ls__error); n++) ls__error[n] = message[n];
	if (detail.len && n + 2 < sizeof(ls__error)) {
		ls__error[n++] = ':';
		ls__error[n++] = ' ';
		for (uint32_t i = 0; i < detail.len && n < sizeof(ls__error); i++) ls__error[n++] = detail.at[i];
	}
	ls__error_len = n;
	return LS_FAILED;
}

// ls_fail keeps a sentence for the user and returns LS_FAILED.
LS_FN int ls_fail(const char *message) { return ls_fail_at(message, (ls_str){0, 0}); }

// ---- Writing documents --------------------------------------------------------

// ls_out is a text that grows.
typedef struct {
	char *at;
	uint32_t len, cap;
} ls_out;

LS_FN void ls_put_bytes(ls_out *o, const char *at, uint32_t n) {
	if (n > LS_MAX_DOCUMENT || o->len + n > LS_MAX_DOCUMENT) ls_panic("a document of the plugin is larger than 4 MB");
	if (o->cap - o->len < n) {
		o->cap = 2 * (o->len + n) + 64;
		o->at = ls_grow(o->at, o->len, o->cap);
	}
	memcpy(o->at + o->len, at, n);
	o->len += n;
}

// ls_put adds text as it is.
LS_FN void ls_put(ls_out *o, const char *text) { ls_put_bytes(o, text, ls_length(text)); }

// ls_put_string adds a JSON string with its quotes.
LS_FN void ls_put_string(ls_out *o, ls_str s) {
	static const char hex[] = "0123456789abcdef";
	ls_put(o, "\"");
	for (uint32_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.at[i];
		char escaped[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
		if (c < 0x20)
			ls_put_bytes(o, escaped, 6);
		else if (c == '"' || c == '\\')
			ls_put_bytes(o, (char[2]){'\\', (char)c}, 2);
		else
			ls_put_bytes(o, (char *)&c, 1);
	}
	ls_put(o, "\"");
}

// ls_put_int adds a number.
LS_FN void ls_put_int(ls_out *o, int64_t v) {
	char digits[20];
	uint32_t n = 20;
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
	do digits[--n] = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0) digits[--n] = '-';
	ls_put_bytes(o, digits + n, 20 - n);
}

// ---- Reading documents --------------------------------------------------------

typedef enum { LS_NULL, LS_BOOL, LS_NUMBER, LS_STRING, LS_ARRAY, LS_OBJECT } ls_kind;

// ls_json is a value of a document. NULL stands for a value that is not there and
// is taken by every function, so that a plugin can walk a document without
// checking each step. Values of loadstone_open stay for the life of the instance,
// others until the function returns.
typedef struct {
	ls_kind kind;
	// Of a string, number or bool.
	ls_str text;
	// How many items, or members, and how many values with all that is inside.
	uint32_t count, span;
} ls_json;

typedef struct {
	char *s;
	uint32_t i, n;
	ls_json *values;
	uint32_t used, cap;
} ls__parser;

LS_FN bool ls__json_fail(const char *what) {
	ls_fail_at("JSON", (ls_str){what, ls_length(what)});
	return false;
}

LS_FN void ls__space(ls__parser *p) {
	while (p->i < p->n && (p->s[p->i] == ' ' || p->s[p->i] == '\n' || p->s[p->i] == '\t' || p->s[p->i] == '\r')) p->i++;
}

LS_FN uint32_t ls__add(ls__parser *p, ls_kind kind) {
	if (p->used == p->cap) {
		p->cap = p->cap * 2 + 64;
		p->values = ls_grow(p->values, p->used * (uint32_t)sizeof(ls_json), p->cap * (uint32_t)sizeof(ls_json));
	}
	p->values[p->used] = (ls_json){.kind = kind, .span = 1};
	return p->used++;
}

LS_FN int32_t ls__hex4(ls__parser *p) {
	int32_t v = 0;
	if (p->n - p->i < 4) return -1;
	for (int k = 0; k < 4; k++) {
		char c = p->s[p->i++];
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
		if (d < 0) return -1;
		v = v * 16 + d;
	}
	return v;
}

// ls__string reads a string and undoes its escapes in place: none gets longer.
LS_FN bool ls__string(ls__parser *p, ls_str *out) {
	char *to = p->s + ++p->i;
	out->at = to;
	while (p->i < p->n) {
		unsigned char c = (unsigned char)p->s[p->i++];
		if (c == '"') {
			out->len = (uint32_t)(to - out->at);
			return true;
		}
		if (c < 0x20) return ls__json_fail("a control character in a string");
		if (c != '\\') {
			*to++ = (char)c;
			continue;
		}
		if (p->i >= p->n) break;
		switch (c = (unsigned char)p->s[p->i++]) {
		case '"': case '\\': case '/': *to++ = (char)c; break;
		case 'b': *to++ = '\b'; break;
		case 'f': *to++ = '\f'; break;
		case 'n': *to++ = '\n'; break;
		case 'r': *to++ = '\r'; break;
		case 't': *to++ = '\t'; break;
		case 'u': {
			int32_t v = ls__hex4(p);
			if (v < 0) return ls__json_fail("a bad \\u escape");
			if (v >= 0xd800 && v < 0xdc00 && p->n - p->i >= 6 && p->s[p->i] == '\\' && p->s[p->i + 1] == 'u') {
				uint32_t back = p->i;
				p->i += 2;
				int32_t low = ls__hex4(p);
				if (low >= 0xdc00 && low < 0xe000)
					v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
				else
					p->i = back;
			}
			if (v >= 0xd800 && v < 0xe000) v = 0xfffd;
			if (v < 0x80) {
				*to++ = (char)v;
			} else if (v < 0x800) {
				*to++ = (char)(0xc0 | v >> 6);
				*to++ = (char)(0x80 | (v & 63));
			} else if (v < 0x10000) {
				*to++ = (char)(0xe0 | v >> 12);
				*to++ = (char)(0x80 | (v >> 6 & 63));
				*to++ = (char)(0x80 | (v & 63));
			} else {
				*to++ = (char)(0xf0 | v >> 18);
				*to++ = (char)(0x80 | (v >> 12 & 63));
				*to++ = (char)(0x80 | (v >> 6 & 63));
				*to++ = (char)(0x80 | (v & 63));
			}
			break;
		}
		default: return ls__json_fail("an unknown escape");
		}
	}
	return ls__json_fail("a string without end");
}

LS_FN bool ls__digits(ls__parser *p) {
	uint32_t from = p->i;
	while (p->i < p->n && p->s[p->i] >= '0' && p->s[p->i] <= '9') p->i++;
	return p->i > from;
}

LS_FN bool ls__number(ls__parser *p) {
	if (p->s[p->i] == '-') p->i++;
	if (!ls__digits(p)) return ls__json_fail("a malformed number");
	if (p->i < p->n && p->s[p->i] == '.') {
		p->i++;
		if (!ls__digits(p)) return ls__json_fail("a malformed number");
	}
	if (p->i < p->n && (p->s[p->i] == 'e' || p->s[p->i] == 'E')) {
		p->i++;
		if (p->i < p->n && (p->s[p->i] == '+' || p->s[p->i] == '-')) p->i++;
		if (!ls__digits(p)) return ls__json_fail("a malformed number");
	}
	return true;
}

LS_FN bool ls__word(ls__parser *p, const char *word) {
	uint32_t n = ls_length(word);
	if (p->n - p->i < n || memcmp(p->s + p->i, word, n) != 0) return false;
	p->i += n;
	return true;
}

LS_FN bool ls__value(ls__parser *p, int depth) {
	ls__space(p);
	if (p->i >= p->n) return ls__json_fail("it is cut off");
	if (depth > 64) return ls__json_fail("it is nested too deeply");
	uint32_t from = p->i, v;
	char c = p->s[p->i];
	if (c == '{' || c == '[') {
		char end = c == '{' ? '}' : ']';
		v = ls__add(p, c == '{' ? LS_OBJECT : LS_ARRAY);
		p->i++;
		ls__space(p);
		uint32_t count = 0;
		if (p->i < p->n && p->s[p->i] == end) {
			p->i++;
		} else {
			for (;;) {
				if (c == '{') {
					ls_str name;
					ls__space(p);
					if (p->i >= p->n || p->s[p->i] != '"') return ls__json_fail("a member without a name");
					if (!ls__string(p, &name)) return false;
					p->values[ls__add(p, LS_STRING)].text = name;
					ls__space(p);
					if (p->i >= p->n || p->s[p->i] != ':') return ls__json_fail("a member without a value");
					p->i++;
				}
				if (!ls__value(p, depth + 1)) return false;
				count++;
				ls__space(p);
				if (p->i >= p->n) return ls__json_fail("it is cut off");
				char next = p->s[p->i++];
				if (next == end) break;
				if (next != ',') return ls__json_fail("a comma is missing");
			}
		}
		p->values[v].count = count;
		p->values[v].span = p->used - v;
		return true;
	}
	if (c == '"') {
		ls_str text;
		if (!ls__string(p, &text)) return false;
		p->values[ls__add(p, LS_STRING)].text = text;
		return true;
	}
	if (ls__word(p, "null")) {
		ls__add(p, LS_NULL);
		return true;
	}
	if (ls__word(p, "true") || ls__word(p, "false"))
		v = ls__add(p, LS_BOOL);
	else if (c == '-' || (c >= '0' && c <= '9')) {
		if (!ls__number(p)) return false;
		v = ls__add(p, LS_NUMBER);
	} else
		return ls__json_fail("an unexpected character");
	p->values[v].text = (ls_str){p->s + from, p->i - from};
	return true;
}

// ls_json_parse reads a document in place: s is changed, and the values point into
// it. The result is freed with ls_free; NULL with ls_fail's message is an error.
LS_FN ls_json *ls_json_parse(char *s, uint32_t n) {
	ls__parser p = {.s = s, .n = n};
	bool ok = ls__value(&p, 0);
	if (ok) {
		ls__space(&p);
		ok = p.i == p.n || ls__json_fail("text follows the document");
	}
	if (ok) return p.values;
	ls_free(p.values);
	return 0;
}

// ls_count is the number of items of an array or members of an object.
LS_FN uint32_t ls_count(const ls_json *v) { return v ? v->count : 0; }

// ls_get returns a member of an object, the last of that name.
LS_FN const ls_json *ls_get(const ls_json *v, const char *name) {
	if (!v || v->kind != LS_OBJECT) return 0;
	const ls_json *found = 0, *at = v + 1;
	for (uint32_t i = 0; i < v->count; i++, at += 1 + at[1].span)
		if (ls_is(at->text, name)) found = at + 1;
	return found;
}

// ls_at returns item i of an array.
LS_FN const ls_json *ls_at(const ls_json *v, uint32_t i) {
	if (!v || v->kind != LS_ARRAY || i >= v->count) return 0;
	const ls_json *at = v + 1;
	while (i--) at += at->span;
	return at;
}

// ls_member returns member i of an object and its name.
LS_FN const ls_json *ls_member(const ls_json *v, uint32_t i, ls_str *name) {
	if (!v || v->kind != LS_OBJECT || i >= v->count) return 0;
	const ls_json *at = v + 1;
	while (i--) at += 1 + at[1].span;
	*name = at->text;
	return at + 1;
}

// ls_string returns a string, a number as written, true or false; else an empty text.
LS_FN ls_str ls_string(const ls_json *v) { return v ? v->text : (ls_str){"", 0}; }

// ls_is_true reports whether the value is true.
LS_FN bool ls_is_true(const ls_json *v) { return v && v->kind == LS_BOOL && v->text.at[0] == 't'; }

// ls_float reads a number, or a string that is one; missing is what it returns for
// everything else. It rounds correctly to 15 digits, as all SDKs do.
LS_FN double ls_float(const ls_json *v, double missing) {
	if (!v || (v->kind != LS_NUMBER && v->kind != LS_STRING) || !v->text.len) return missing;
	const char *s = v->text.at, *end = s + v->text.len;
	bool negative = *s == '-', any = false, dot = false;
	if (negative) s++;
	uint64_t digits = 0;
	int32_t scale = 0;
	for (; s < end && ((*s >= '0' && *s <= '9') || (*s == '.' && !dot)); s++) {
		if (*s == '.') {
			dot = true;
			continue;
		}
		any = true;
		if (digits < 100000000000000000u) {
			digits = digits * 10 + (uint64_t)(*s - '0');
			scale -= dot;
		} else
			scale += !dot;
	}
	if (!any) return missing;
	if (s < end && (*s == 'e' || *s == 'E')) {
		bool down = ++s < end && *s == '-';
		if (s < end && (*s == '-' || *s == '+')) s++;
		int32_t e = 0;
		if (s == end) return missing;
		for (; s < end && *s >= '0' && *s <= '9'; s++)
			if (e < 10000) e = e * 10 + (*s - '0');
		scale += down ? -e : e;
	}
	if (s != end) return missing;
	// Powers of ten up to 22 are exact, so that one rounding remains.
	double f = (double)digits;
	while (scale != 0 && f != 0 && f < 0x1p1023) {
		int32_t step = scale > 22 ? 22 : scale < -22 ? -22 : scale;
		double power = 1;
		for (int32_t i = step < 0 ? -step : step; i > 0; i--) power *= 10;
		f = step < 0 ? f / power : f * power;
		scale -= step;
	}
	return negative ? -f : f;
}

// ls_int reads an integer with all its 64 bits, written as 2, 2.0, 2e3 or "2";
// missing is what it returns for everything else.
LS_FN int64_t ls_int(const ls_json *v, int64_t missing) {
	if (!v || (v->kind != LS_NUMBER && v->kind != LS_STRING) || !v->text.len) return missing;
	ls_str t = v->text;
	uint32_t i = t.at[0] == '-';
	bool whole = i < t.len;
	uint64_t u = 0;
	for (; i < t.len && whole; i++) {
		uint64_t d = (uint64_t)(unsigned char)t.at[i] - '0';
		whole = d <= 9 && u <= (UINT64_MAX - d) / 10;
		u = u * 10 + d;
	}
	if (whole && t.at[0] == '-' && u <= (uint64_t)1 << 63) return (int64_t)-u;
	if (whole && t.at[0] != '-' && u < (uint64_t)1 << 63) return (int64_t)u;
	if (v->kind != LS_NUMBER) return missing;
	double f = ls_float(v, 0.5);
	if (!(f > -9e18 && f < 9e18) || (double)(int64_t)f != f) return missing;
	return (int64_t)f;
}

// ---- The document of loadstone_open -------------------------------------------

// ls_request is the document of loadstone_open. It stays for the life of the instance.
typedef struct {
	int64_t seed;
	// No two streams of a run have the same key_slot, and all have the same
	// key_slots: key_max + 1 + key_slot + n·key_slots are new keys that never collide.
	int64_t key_slot, key_slots;
	// The parameters of the template, with the defaults of the plugin's schema.
	const ls_json *params;
	// Arrays; ls_table reads an item of tables. pools are {table, columns, rows}
	// with sampled keys, where keys are not dense integers.
	const ls_json *tables, *pools;
} ls_request;

// ls_table is an existing table, under its logical name.
typedef struct {
	ls_str name, physical_name;
	int64_t rows;
	// key_min and key_max are set when has_range: the key is one integer column and the table is not empty.
	bool has_range;
	int64_t key_min, key_max;
	// dense: every integer from key_min to key_max is a key. If not, those up to
	// dense_max are, which is below key_min when unknown.
	bool dense;
	int64_t dense_max;
	// Arrays: names of the key's columns, and {name, type, db_type, nullable, has_default, generated, unique, max_length}.
	const ls_json *key, *columns;
} ls_table;

// ls_table_of reads one table of a request; value may be NULL.
LS_FN ls_table ls_table_of(const ls_json *value) {
	ls_table t = {.name = ls_string(ls_get(value, "name")), .physical_name = ls_string(ls_get(value, "physical_name"))};
	const ls_json *lo = ls_get(value, "key_min"), *hi = ls_get(value, "key_max");
	t.rows = ls_int(ls_get(value, "rows"), 0);
	t.has_range = lo && lo->kind == LS_NUMBER && hi && hi->kind == LS_NUMBER;
	t.key_min = ls_int(lo, 0);
	t.key_max = ls_int(hi, 0);
	t.dense = ls_is_true(ls_get(value, "dense"));
	t.dense_max = ls_int(ls_get(value, "dense_max"), t.key_min - 1);
	t.key = ls_get(value, "key");
	t.columns = ls_get(value, "columns");
	return t;
}

// ls_table_named returns the table of that logical name; found is false when the request has none.
LS_FN ls_table ls_table_named(const ls_request *request, const char *name, bool *found) {
	for (uint32_t i = 0; i < ls_count(request->tables); i++) {
		ls_table t = ls_table_of(ls_at(request->tables, i));
		if (ls_is(t.name, name)) {
			*found = true;
			return t;
		}
	}
	*found = false;
	return ls_table_of(0);
}

// ---- Batches ------------------------------------------------------------------

// ls_batch takes operations, or sample rows, in wire format.
typedef struct {
	uint8_t *at;
	uint32_t len, cap;
	// Operations so far, the place of the running operation's argument count, and the
	// operations up to the last BEGIN.
	uint32_t ops, args_at, first;
} ls_batch;

__attribute__((noinline, unused)) static void ls__batch_grow(ls_batch *b, uint32_t n) {
	if (n > LS_MAX_BATCH_BYTES || b->len + n > LS_MAX_BATCH_BYTES) ls_panic("a batch of the plugin is larger than 8 MB");
	b->cap = 2 * (b->len + n) + 4096;
	b->at = ls_grow(b->at, b->len, b->cap);
}

LS_INLINE uint8_t *ls__take(ls_batch *b, uint32_t n) {
	if (__builtin_expect(b->cap - b->len < n, 0)) ls__batch_grow(b, n);
	uint8_t *p = b->at + b->len;
	b->len += n;
	return p;
}

LS_INLINE void ls__store16(uint8_t *p, uint16_t v) { __builtin_memcpy(p, &v, 2); }
LS_INLINE void ls__store32(uint8_t *p, uint32_t v) { __builtin_memcpy(p, &v, 4); }
LS_INLINE void ls__store64(uint8_t *p, uint64_t v) { __builtin_memcpy(p, &v, 8); }

LS_FN void ls__reset(ls_batch *b) {
	b->len = b->ops = b->args_at = b->first = 0;
	ls__store64(ls__take(b, LS_HEADER_SIZE), LS_BATCH_VERSION);
}

// ls_len is the number of operations so far: BEGIN, COMMIT, ROLLBACK and DELAY count.
LS_INLINE int ls_len(const ls_batch *b) { return (int)b->ops; }

// ls_op begins an operation: the statement's place in the manifest. Its arguments follow.
LS_INLINE void ls_op(ls_batch *b, uint16_t statement) {
	uint8_t *p = ls__take(b, 3);
	ls__store16(p, statement);
	p[2] = 0;
	b->args_at = b->len - 1;
	b->ops++;
}

// ls_row begins a sample row; its columns follow.
LS_INLINE void ls_row(ls_batch *b) { ls_op(b, 0); }

LS_INLINE void ls__argument(ls_batch *b) {
	if (__builtin_expect(!b->args_at, 0)) ls_panic("an argument stands before the first operation of a batch");
	b->at[b->args_at]++;
}

LS_INLINE void ls__eight(ls_batch *b, uint8_t type, uint64_t v) {
	uint8_t *p = ls__take(b, 9);
	p[0] = type;
	ls__store64(p + 1, v);
	ls__argument(b);
}

// ls_null adds a NULL.
LS_INLINE void ls_null(ls_batch *b) {
	*ls__take(b, 1) = LS_TYPE_NULL;
	ls__argument(b);
}

// ls_i64 adds an integer.
LS_INLINE void ls_i64(ls_batch *b, int64_t v) { ls__eight(b, LS_TYPE_I64, (uint64_t)v); }

// ls_f64 adds a float.
LS_INLINE void ls_f64(ls_batch *b, double v) {
	uint64_t bits;
	__builtin_memcpy(&bits, &v, 8);
	ls__eight(b, LS_TYPE_F64, bits);
}

// ls_timestamp adds a time in microseconds since 1970, UTC.
LS_INLINE void ls_timestamp(ls_batch *b, int64_t micros) { ls__eight(b, LS_TYPE_TIMESTAMP, (uint64_t)micros); }

// ls_bool adds a boolean.
LS_INLINE void ls_bool(ls_batch *b, bool v) {
	uint8_t *p = ls__take(b, 2);
	p[0] = LS_TYPE_BOOL;
	p[1] = v;
	ls__argument(b);
}

// ls_ref adds column c of the first row that operation k of the running
// transaction returned, both counted from 0. That statement must declare its columns.
LS_INLINE void ls_ref(ls_batch *b, uint8_t k, uint8_t c) {
	uint8_t *p = ls__take(b, 3);
	p[0] = LS_TYPE_REF;
	p[1] = k;
	p[2] = c;
	ls__argument(b);
}

LS_INLINE char *ls__space_of(ls_batch *b, uint8_t type, uint32_t n) {
	if (n > LS_MAX_BATCH_BYTES) ls_panic("a text of the plugin is larger than 8 MB");
	uint8_t *p = ls__take(b, n + 5);
	p[0] = type;
	ls__store32(p + 1, n);
	ls__argument(b);
	return (char *)(p + 5);
}

// ls_text_space adds a text of n bytes and returns its space, to be filled at once with UTF-8.
LS_INLINE char *ls_text_space(ls_batch *b, uint32_t n) { return ls__space_of(b, LS_TYPE_TEXT, n); }

// ls_bytes_space is ls_text_space for bytes.
LS_INLINE char *ls_bytes_space(ls_batch *b, uint32_t n) { return ls__space_of(b, LS_TYPE_BYTES, n); }

// ls_text adds a text, which must be UTF-8 and is copied.
LS_INLINE void ls_text(ls_batch *b, ls_str s) { memcpy(ls_text_space(b, s.len), s.at, s.len); }

// ls_bytes adds bytes, which are copied.
LS_INLINE void ls_bytes(ls_batch *b, ls_str s) { memcpy(ls_bytes_space(b, s.len), s.at, s.len); }

// ls_begin begins a transaction. ls_commit or ls_rollback must end it in the same
// batch, after 1 to 256 operations; one that began before max may end past it.
LS_INLINE void ls_begin(ls_batch *b) {
	ls_op(b, LS_STATEMENT_BEGIN);
	b->first = b->ops;
}

// ls_commit ends a transaction.
LS_INLINE void ls_commit(ls_batch *b) { ls_op(b, LS_STATEMENT_COMMIT); }

// ls_rollback ends a transaction whose changes are to be undone; that is a success.
LS_INLINE void ls_rollback(ls_batch *b) { ls_op(b, LS_STATEMENT_ROLLBACK); }

// ls_last is the k by which ls_ref knows the operation begun last.
LS_INLINE uint8_t ls_last(const ls_batch *b) { return (uint8_t)(b->ops - b->first - 1); }

// ls_delay adds think time in microseconds for whoever takes the next operation.
LS_INLINE void ls_delay(ls_batch *b, int64_t micros) {
	ls_op(b, LS_STATEMENT_DELAY);
	ls_i64(b, micros);
}

// ---- Random numbers -----------------------------------------------------------

// ls_rand is xoshiro256++, seeded through splitmix64.
typedef struct {
	uint64_t a, b, c, d;
} ls_rand;

LS_INLINE uint64_t ls__finish(uint64_t z) {
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

// ls_mix is a bijection of 64-bit numbers that spreads near values apart.
LS_INLINE uint64_t ls_mix(uint64_t x) { return ls__finish(x + 0x9e3779b97f4a7c15u); }

// ls_seed starts a source that depends on seed and stream only; streams of one seed are independent.
LS_INLINE void ls_seed(ls_rand *r, int64_t seed, int64_t stream) {
	uint64_t x = ls_mix((uint64_t)seed) ^ ls_mix((uint64_t)stream + 0x632be59bd9b4e019u);
	r->a = ls__finish(x += 0x9e3779b97f4a7c15u);
	r->b = ls__finish(x += 0x9e3779b97f4a7c15u);
	r->c = ls__finish(x += 0x9e3779b97f4a7c15u);
	r->d = ls__finish(x += 0x9e3779b97f4a7c15u);
}

// ls_u64 returns 64 random bits.
LS_INLINE uint64_t ls_u64(ls_rand *r) {
	uint64_t sum = r->a + r->d, out = (sum << 23 | sum >> 41) + r->a, t = r->b << 17;
	r->c ^= r->a;
	r->d ^= r->b;
	r->b ^= r->c;
	r->a ^= r->d;
	r->c ^= t;
	r->d = r->d << 45 | r->d >> 19;
	return out;
}

// ls_unit returns a number in [0, 1).
LS_INLINE double ls_unit(ls_rand *r) { return (double)(int64_t)(ls_u64(r) >> 11) * 0x1p-53; }

LS_INLINE uint64_t ls__mul_high(uint64_t a, uint64_t b, uint64_t *low) {
	uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
	uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (uint32_t)mid;
	*low = a * b;
	return ah * bh + (mid >> 32) + (mid2 >> 32);
}

// ls_below returns a number in [0, n), without bias; 0 when n is not positive.
LS_FN int64_t ls_below(ls_rand *r, int64_t n) {
	if (n <= 0) return 0;
	uint64_t m = (uint64_t)n;
	if (m <= (uint64_t)1 << 32) {
		for (;;) {
			uint64_t x = (ls_u64(r) >> 32) * m, low = (uint32_t)x;
			if (low >= m || low >= ((uint64_t)1 << 32) % m) return (int64_t)(x >> 32);
		}
	}
	uint64_t low, high = ls__mul_high(ls_u64(r), m, &low);
	if (low < m)
		for (uint64_t threshold = -m % m; low < threshold;) high = ls__mul_high(ls_u64(r), m, &low);
	return (int64_t)high;
}

// ls_between returns a number in [lo, hi].
LS_FN int64_t ls_between(ls_rand *r, int64_t lo, int64_t hi) {
	return hi <= lo ? lo : (int64_t)((uint64_t)lo + (uint64_t)ls_below(r, (int64_t)((uint64_t)hi - (uint64_t)lo + 1)));
}

// ls_letters fills n bytes with the letters a–p and A–P.
LS_FN void ls_letters(ls_rand *r, char *to, uint32_t n) {
	const uint64_t each = 0x0101010101010101u;
	for (;;) {
		if (!n) return;
		uint64_t x = ls_u64(r);
		x = (x & 0x0f * each) + 'a' * each - (x & 0x20 * each);
		if (n < 8) {
			for (uint32_t i = 0; i < n; i++, x >>= 8) to[i] = (char)x;
			return;
		}
		ls__store64((uint8_t *)to, x);
		to += 8;
		n -= 8;
	}
}

// ls_noise fills n bytes with random bytes.
LS_FN void ls_noise(ls_rand *r, char *to, uint32_t n) {
	for (; n >= 8; n -= 8, to += 8) ls__store64((uint8_t *)to, ls_u64(r));
	if (n) {
		uint64_t x = ls_u64(r);
		for (uint32_t i = 0; i < n; i++, x >>= 8) to[i] = (char)x;
	}
}

// ---- Distributions ------------------------------------------------------------

LS_INLINE uint64_t ls__bits(double f) {
	uint64_t b;
	__builtin_memcpy(&b, &f, 8);
	return b;
}
LS_INLINE double ls__double(uint64_t b) {
	double f;
	__builtin_memcpy(&f, &b, 8);
	return f;
}

LS_FN double ls__ln(double x) {
	uint64_t b = ls__bits(x);
	int64_t e = (int64_t)(b >> 52) - 1023;
	double m = ls__double((b & (((uint64_t)1 << 52) - 1)) | (uint64_t)1023 << 52);
	if (m > 0x1.6a09e667f3bcdp+0) {
		m *= 0.5;
		e++;
	}
	double s = (m - 1) / (m + 1), z = s * s, sum = 1.0 / 23;
	sum = sum * z + 1.0 / 21;
	sum = sum * z + 1.0 / 19;
	sum = sum * z + 1.0 / 17;
	sum = sum * z + 1.0 / 15;
	sum = sum * z + 1.0 / 13;
	sum = sum * z + 1.0 / 11;
	sum = sum * z + 1.0 / 9;
	sum = sum * z + 1.0 / 7;
	sum = sum * z + 1.0 / 5;
	sum = sum * z + 1.0 / 3;
	sum = sum * z + 1;
	double f = (double)e;
	return f * 0x1.62e42feep-1 + (f * 0x1.a39ef35793c76p-33 + 2 * s * sum);
}

LS_FN double ls__exp(double t) {
	double n = t * 0x1.71547652b82fep+0;
	if (!(n > -1000)) return 0;
	if (n > 1000) return 0x1p1000;
	int64_t k = (int64_t)(n + 2048.5);
	double f = (double)(k - 2048), r = t - f * 0x1.62e42feep-1 - f * 0x1.a39ef35793c76p-33, sum = 1.0 / 87178291200.0;
	sum = sum * r + 1.0 / 6227020800.0;
	sum = sum * r + 1.0 / 479001600.0;
	sum = sum * r + 1.0 / 39916800.0;
	sum = sum * r + 1.0 / 3628800.0;
	sum = sum * r + 1.0 / 362880.0;
	sum = sum * r + 1.0 / 40320.0;
	sum = sum * r + 1.0 / 5040.0;
	sum = sum * r + 1.0 / 720.0;
	sum = sum * r + 1.0 / 120.0;
	sum = sum * r + 1.0 / 24.0;
	sum = sum * r + 1.0 / 6.0;
	sum = sum * r + 1.0 / 2.0;
	sum = sum * r + 1;
	sum = sum * r + 1;
	return sum * ls__double((uint64_t)(k - 2048 + 1023) << 52);
}

// ls_pow returns x^y for x > 0. It computes the same bits in every SDK.
LS_FN double ls_pow(double x, double y) {
	if (y == 0 || x == 1) return 1;
	return x > 0 ? ls__exp(y * ls__ln(x)) : 0;
}

typedef struct {
	int64_t lo, width;
	double sure;
	uint64_t keep;
	uint32_t alias;
} ls__cell;

// ls_zipf draws ranks 0 … n-1 with probability proportional to 1/(rank+1)^theta,
// exactly, for any theta ≥ 0.
typedef struct {
	double theta;
	ls__cell *cells;
	uint64_t mask;
} ls_zipf;

// ls_zipf_init prepares a distribution over n ranks; n below 1 counts as 1, theta
// below 0 as 0. z must be zero (static, or = {0}) or prepared before.
LS_FN void ls_zipf_init(ls_zipf *z, int64_t n, double theta) {
	if (n < 1) n = 1;
	if (!(theta >= 0)) theta = 0;
	// 64 ranks and, up to 2^63, fewer than 400 buckets.
	const uint32_t most = 512;
	ls_free(z->cells);
	ls__cell *cells = z->cells = ls_new(most * (uint32_t)sizeof(ls__cell));
	double *weights = ls_new(most * (uint32_t)sizeof(double));
	uint32_t used = 0, size = 1;
	z->theta = theta;
	for (int64_t lo = 1; lo <= n && used < most;) {
		int64_t width = 1;
		if (lo > 64) {
			width = lo / 8 < n - lo + 1 ? lo / 8 : n - lo + 1;
			if (width < 1) width = 1;
		}
		cells[used].lo = lo;
		cells[used].width = width;
		cells[used].sure = ls_pow((double)lo / (double)(lo + width - 1), theta);
		weights[used++] = (double)width * ls_pow((double)lo, -theta);
		if (lo > n - width) break;
		lo += width;
	}
	while (size < used) size *= 2;
	for (; used < size; used++) cells[used] = (ls__cell){.lo = 1, .width = 1, .sure = 1};
	z->mask = size - 1;
	double sum = 0;
	for (uint32_t i = 0; i < size; i++) sum += weights[i];
	uint32_t small[512], large[512], smalls = 0, larges = 0;
	for (uint32_t i = 0; i < size; i++) {
		weights[i] *= (double)size / sum;
		if (weights[i] < 1)
			small[smalls++] = i;
		else
			large[larges++] = i;
	}
	const uint64_t full = (uint64_t)1 << 53;
	while (smalls && larges) {
		uint32_t s = small[--smalls], l = large[larges - 1];
		cells[s].keep = (uint64_t)(weights[s] * (double)full);
		cells[s].alias = l;
		weights[l] += weights[s] - 1;
		if (weights[l] < 1) {
			larges--;
			small[smalls++] = l;
		}
	}
	while (smalls || larges) {
		uint32_t i = smalls ? small[--smalls] : large[--larges];
		cells[i].keep = full;
		cells[i].alias = i;
	}
	ls_free(weights);
}

// ls_zipf_next draws a rank.
LS_INLINE int64_t ls_zipf_next(const ls_zipf *z, ls_rand *r) {
	for (;;) {
		uint64_t x = ls_u64(r);
		const ls__cell *c = &z->cells[x & z->mask];
		if (x >> 11 >= c->keep) c = &z->cells[c->alias];
		if (c->width == 1) return c->lo - 1;
		int64_t rank = c->lo + ls_below(r, c->width);
		double u = ls_unit(r);
		if (u < c->sure || u < ls_pow((double)c->lo / (double)rank, z->theta)) return rank - 1;
	}
}

// ls_scramble maps ranks onto [0, n) one to one, so that neighbouring ranks lie far
// apart: a skewed workload then touches the whole table instead of its first pages.
typedef struct {
	uint64_t n, step, offset;
} ls_scramble;

LS_FN void ls_scramble_init(ls_scramble *s, int64_t n) {
	*s = (ls_scramble){.n = n < 1 ? 1 : (uint64_t)n};
	if (s->n >= (uint64_t)1 << 31) return;
	for (s->step = (uint64_t)((double)s->n * 0.6180339887498949) | 1;; s->step += 2) {
		uint64_t a = s->step, b = s->n;
		while (b) {
			uint64_t rest = a % b;
			a = b;
			b = rest;
		}
		if (a == 1) break;
	}
	s->step %= s->n;
	s->offset = ls_mix(s->n) % s->n;
}

// ls_scramble_at returns the place of a rank in [0, n). From 2^31 on places may coincide.
LS_INLINE int64_t ls_scramble_at(const ls_scramble *s, int64_t rank) {
	if (s->n < (uint64_t)1 << 31) return (int64_t)(((uint64_t)rank * s->step + s->offset) % s->n);
	return (int64_t)(ls_mix((uint64_t)rank) % s->n);
}

// ---- What the plugin defines, and the exports ---------------------------------

// loadstone_describe writes the manifest: one JSON document.
void loadstone_describe(ls_out *out);

// loadstone_open starts a stream.
int loadstone_open(const ls_request *request);

// loadstone_fill adds operations while ls_len(batch) < max, at least one; none ends the stream.
int loadstone_fill(ls_batch *batch, int max);

// loadstone_rows adds sample rows first … first+max-1 of a table (its place in the
// manifest); fewer are fine, none means that there are no more. A row depends on the
// parameters and its number only.
int loadstone_rows(ls_batch *batch, const ls_json *params, int table, int64_t first, int max);

// loadstone_call answers a request document by one JSON document.
int loadstone_call(ls_str op, const ls_json *request, ls_out *answer);

static ls_out ls__document;
static char *ls__input;
static uint32_t ls__input_cap;

LS_INLINE int64_t ls__pack(const void *at, uint32_t n) { return (int64_t)((uint64_t)(uintptr_t)at << 32 | n); }

LS_EXPORT(ls_abi) int32_t ls__export_abi(void) { return LS_ABI_VERSION; }

LS_EXPORT(ls_describe) int64_t ls__export_describe(void) {
	ls__document.len = 0;
	loadstone_describe(&ls__document);
	return ls__pack(ls__document.at, ls__document.len);
}

LS_EXPORT(ls_error) int64_t ls__export_error(void) { return ls__pack(ls__error, ls__error_len); }

LS_EXPORT(ls_alloc) int32_t ls__export_alloc(int32_t n) {
	if (n <= 0 || n > LS_MAX_DOCUMENT) return 0;
	ls_free(ls__input);
	ls__input = ls_new((uint32_t)n);
	ls__input_cap = (uint32_t)n;
	return (int32_t)(uintptr_t)ls__input;
}

#ifndef LOADSTONE_ADAPTER
static ls_batch ls__batch;
static ls_json *ls__opened;
static char *ls__opened_text;
static ls_request ls__request;

LS_EXPORT(ls_open) int32_t ls__export_open(int32_t at, int32_t n) {
	(void)at;
	if (!ls__input || n < 0 || (uint32_t)n > ls__input_cap) return ls_fail("the document of ls_open was not written to what ls_alloc returned");
	// The values of the document before are gone: the stream that used them is.
	ls_free(ls__opened);
	ls_free(ls__opened_text);
	ls__opened_text = ls__input;
	ls__input = 0;
	if (!(ls__opened = ls_json_parse(ls__opened_text, (uint32_t)n))) return LS_FAILED;
	const ls_json *doc = ls__opened;
	int64_t slots = ls_int(ls_get(doc, "key_slots"), 1);
	ls__request = (ls_request){.seed = ls_int(ls_get(doc, "seed"), 0), .key_slot = ls_int(ls_get(doc, "key_slot"), 0),
		.key_slots = slots < 1 ? 1 : slots, .params = ls_get(doc, "params"), .tables = ls_get(doc, "tables"), .pools = ls_get(doc, "pools")};
#ifdef LOADSTONE_ROWS
	// It only tells the parameters of loadstone_rows: a workload with sample rows has tables.
	if (!ls_count(ls__request.tables)) return LS_OK;
#endif
	return loadstone_open(&ls__request);
}

LS_FN int64_t ls__batch_result(int result) {
	if (result != LS_OK) return LS_FILL_ERROR;
	if (!ls__batch.ops) return 0;
	ls__store32(ls__batch.at + 4, ls__batch.ops);
	return ls__pack(ls__batch.at, ls__batch.len);
}

LS_EXPORT(ls_fill) int64_t ls__export_fill(int32_t max) {
	ls__reset(&ls__batch);
	return ls__batch_result(loadstone_fill(&ls__batch, max));
}

#ifdef LOADSTONE_ROWS
LS_EXPORT(ls_rows) int64_t ls__export_rows(int32_t table, int64_t first, int32_t max) {
	ls__reset(&ls__batch);
	return ls__batch_result(loadstone_rows(&ls__batch, ls__request.params, table, first, max));
}
#endif
#endif

#if defined(LOADSTONE_CALL) || defined(LOADSTONE_ADAPTER)
LS_EXPORT(ls_call) int64_t ls__export_call(int32_t at, int32_t n) {
	(void)at;
	if (!ls__input || n < 0 || (uint32_t)n > ls__input_cap) {
		ls_fail("the document of ls_call was not written to what ls_alloc returned");
		return LS_FILL_ERROR;
	}
	ls_json *doc = ls_json_parse(ls__input, (uint32_t)n);
	if (!doc) return LS_FILL_ERROR;
	ls__document.len = 0;
	int result = loadstone_call(ls_string(ls_get(doc, "op")), doc, &ls__document);
	ls_free(doc);
	return result == LS_OK ? ls__pack(ls__document.at, ls__document.len) : LS_FILL_ERROR;
}
#endif

#endif
