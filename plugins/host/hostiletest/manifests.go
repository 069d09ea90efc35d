package hostiletest

import (
	"fmt"
	"strings"
)

// workload is a manifest with these members besides its kind and name.
func workload(members string) string {
	return `{"kind":"workload","name":"hostile","version":"1.0.0",` + members + `}`
}

const oneStatement = `"statements":[{"id":"one","binds":["i64"],"sql":"SELECT $1::bigint"}]`

// many joins n texts.
func many(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(f(i))
	}
	return b.String()
}

// manifests are no JSON, or declare what cannot be.
func manifests(l *list) {
	documents(l)
	logicalTables(l)
	statements(l)
	sizes(l)
}

func (l *list) refused(name, says, doc string) *File {
	return l.plugin(Quarantine, name, says, plugin{manifest: doc})
}

func (l *list) taken(name, doc string) *File {
	return l.plugin(Harmless, name, "", plugin{manifest: doc})
}

// documents are no manifest, or one with members that are wrong.
func documents(l *list) {
	refused, taken := l.refused, l.taken
	refused("text", "manifest", "hello")
	refused("null", "kind", "null")
	refused("list", "manifest", "[]")
	refused("number", "manifest", "1e999999999")
	refused("object-without-anything", "kind", "{}")
	refused("half", "manifest", `{"kind":"workload","name":`)
	refused("two", "manifest", `{"kind":"workload"}{"kind":"adapter"}`)
	refused("xml", "manifest", `<manifest kind="workload"/>`)
	refused("yaml", "manifest", "kind: workload\nname: x\n")
	refused("comments", "manifest", `{/* hello */"kind":"workload"}`)
	refused("trailing-comma", "manifest", `{"kind":"workload",}`)
	refused("byte-order-mark", "manifest", "\xef\xbb\xbf"+manifest)
	refused("kind-unknown", "kind", `{"kind":"driver","name":"x"}`)
	refused("kind-of-escapes", "kind", `{"kind":"\u001b[2Jworkload","name":"x"}`)
	refused("kind-a-number", "manifest", `{"kind":1,"name":"x"}`)
	refused("adapter-without-a-driver", "driver", `{"kind":"adapter","name":"a"}`)
	for i, name := range []string{"../x", "..", "/etc/passwd", "a/b", `a\b`, "C:x", "<script>alert(1)</script>",
		"\\u001b[2J", "a\\u0000b", "\\u202egnp.msaw", "A", "1a", "", " ", "a b",
		"käse", "a.wasm", "-a", "_a", strings.Repeat("a", 65), "con:", "a\\nb", "%2e%2e%2f", "a'; DROP TABLE runs; --",
		"${jndi:x}"} {
		refused(fmt.Sprintf("name-%02d", i), "name", `{"kind":"workload","name":"`+strings.ReplaceAll(name, `\b`, `\\b`)+`",`+
			oneStatement+`}`)
	}
	refused("name-a-list", "manifest", `{"kind":"workload","name":["x"]}`)
	for i, version := range []string{"1 2", "<b>", "../1", "1\\u0000", strings.Repeat("1", 65), "\\u001b[31m1"} {
		refused(fmt.Sprintf("version-%d", i), "version", `{"kind":"workload","name":"x","version":"`+version+`",`+
			oneStatement+`}`)
	}
	refused("version-a-list", "", `{"kind":"workload","name":"x","version":[1]}`)
	taken("version-a-number", `{"kind":"workload","name":"x","version":1.5,`+oneStatement+`}`)
	taken("title-of-html", workload(
		`"title":"<img src=x onerror=alert(1)>","description":"</script><script>alert(1)</script>","author":"\u202e\u001b]8;;http://x\u0007",`+oneStatement,
	))
	taken("title-of-zeros", workload(`"title":"a\u0000b\r\nSet-Cookie: x","description":"`+strings.Repeat("long ", 5000)+
		`",`+oneStatement))
	refused("members-unknown", "nobody reads",
		workload(`"__proto__":{"admin":true},"constructor":1,"unknown":[[[]]],`+oneStatement))
	refused("members-twice", "twice", `{"kind":"adapter","kind":"workload","name":"y","name":"x",`+oneStatement+`}`)
	taken("bytes-that-are-not-utf-8", workload("\"title\":\"\xff\xfe\xc3\","+oneStatement))
	taken("half-a-surrogate", workload(`"title":"\ud800",`+oneStatement))
}

// logicalTables of a manifest are malformed, or more than anybody needs.
func logicalTables(l *list) {
	refused, taken := l.refused, l.taken
	refused("table-without-a-name", "table", workload(`"tables":[{"columns":["id i64"]}]`))
	refused("tables-with-one-name", "table",
		workload(`"tables":[{"name":"t","columns":["id i64"]},{"name":"t","columns":["id i64"]}]`))
	refused("table-name-of-escapes", "control", workload(`"tables":[{"name":"\u001b[2J","columns":["id i64"]}]`))
	refused("column-of-an-unknown-type", "type", workload(`"tables":[{"name":"t","columns":["id int"]}]`))
	refused("column-without-a-name", "", workload(`"tables":[{"name":"t","columns":[{"type":"i64"}]}]`))
	refused("columns-with-one-name", "", workload(`"tables":[{"name":"t","columns":["a i64","a i64"]}]`))
	refused("column-type-with-a-zero", "control",
		workload(`"tables":[{"name":"t","columns":[{"name":"a","type":"i64","db_type":{"postgres":"int\u0000"}}]}]`))
	refused("columns-256", "limit",
		workload(`"tables":[{"name":"t","columns":[`+many(256, func(i int) string { return fmt.Sprintf(`"c%d i64"`, i) })+
			`]}]`))
	refused("key-that-is-no-column", "key", workload(`"tables":[{"name":"t","columns":["id i64"],"key":["x"]}]`))
	refused("types-without-columns", "", workload(`"tables":[{"name":"t","columns":["a"],"types":["i64","i64"]}]`))
	refused("rows-not-a-number", "manifest", workload(`"tables":[{"name":"t","columns":["id i64"],"rows":"many"}]`))
	refused("rows-1e99", "manifest", workload(`"tables":[{"name":"t","columns":["id i64"],"rows":1e99}]`))
	l.plugin(Quarantine, "rows-9-quintillion", "rows",
		plugin{manifest: workload(`"tables":[{"name":"t","columns":["id i64"],"key":["id"],"rows":9223372036854775807}],` +
			oneStatement)})
	l.plugin(Quarantine, "rows-negative", "rows",
		plugin{manifest: workload(`"tables":[{"name":"t","columns":["id i64"],"key":["id"],"rows":-5}],` + oneStatement)})
	taken("table-name-of-sql", workload(
		`"tables":[{"name":"t\"; DROP TABLE runs; --","columns":["id i64"],"key":["id"]}],`+oneStatement))
	l.plugin(Quarantine, "tables-10-000", "tables",
		plugin{manifest: workload(`"tables":[` +
			many(10_000, func(i int) string { return fmt.Sprintf(`{"name":"t%d","columns":["id i64"]}`, i) }) + `],` +
			oneStatement)})
}

// statements of a manifest are malformed, or more than anybody needs.
func statements(l *list) {
	refused, taken := l.refused, l.taken
	statement := func(name, says, members string) { refused(name, says, workload(`"statements":[{`+members+`}]`)) }
	statement("statement-of-an-unknown-kind", "kind", `"id":"a","kind":"DROP"`)
	statement("statement-of-escapes", "control", `"id":"\u001b[2J","sql":"SELECT 1"`)
	statement("sql-with-a-zero", "control", `"id":"a","sql":"SELECT 1;\u0000"`)
	statement("sql-with-escapes", "control", `"id":"a","sql":"SELECT '\u001b[2J'"`)
	statement("sql-a-list", "manifest", `"id":"a","sql":["SELECT 1"]`)
	statement("sql-of-dialects-of-lists", "manifest", `"id":"a","sql":{"postgres":[1]}`)
	statement("bind-of-an-unknown-type", "", `"id":"a","sql":"SELECT 1","binds":[{"name":"x","type":"decimal"}]`)
	statement("binds-256", "limit", `"id":"a","sql":"SELECT 1","binds":[`+many(256, func(int) string { return `"i64"` })+
		`]`)
	refused("statements-with-one-id", "",
		workload(`"statements":[{"id":"a","sql":"SELECT 1"},{"id":"a","sql":"SELECT 2"}]`))
	refused("statements-1025", "statements",
		workload(`"statements":[`+many(1025, func(i int) string { return fmt.Sprintf(`{"id":"s%d","sql":"SELECT 1"}`, i) })+
			`]`))
	refused("statements-10-000", "statements",
		workload(`"statements":[`+many(10_000, func(i int) string { return fmt.Sprintf(`{"id":"s%d","sql":"SELECT 1"}`, i) })+
			`]`))
	refused("statements-a-text", "manifest", workload(`"statements":"SELECT 1"`))
	taken("sql-of-two-statements",
		workload(`"statements":[{"id":"a","binds":["i64"],"sql":"SELECT $1::bigint; DROP TABLE runs"}]`))
	taken("sql-of-html", workload(
		`"statements":[{"id":"<script>","binds":["i64"],"sql":"SELECT $1::bigint -- <script>alert(1)</script>"}]`))
}

// sizes of manifests, and what describes itself otherwise than the contract says.
func sizes(l *list) {
	f := l.plugin(Bounded, "sql-of-3-megabytes", "",
		plugin{manifest: workload(`"statements":[{"id":"a","binds":["i64"],"sql":"SELECT $1::bigint -- ` +
			strings.Repeat("x", 3<<20) + `"}]`)})
	f.Large = true
	l.plugin(Quarantine, "sql-of-5-megabytes", "limit",
		plugin{manifest: workload(`"statements":[{"id":"a","sql":"SELECT 1 -- ` + strings.Repeat("x", 5<<20) + `"}]`)}).
		Large = true
	l.plugin(Gate, "sql-of-10-megabytes", "limit",
		plugin{manifest: workload(`"statements":[{"id":"a","sql":"SELECT 1 -- ` + strings.Repeat("x", 10<<20) + `"}]`)}).
		Large = true
	l.plugin(Bounded, "ids-of-a-megabyte", "",
		plugin{manifest: workload(`"statements":[{"id":"` + strings.Repeat("x", 1<<20) +
			`","binds":["i64"],"sql":"SELECT $1::bigint"}]`)}).Large = true
	l.plugin(Quarantine, "100-000-brackets", "manifest", plugin{manifest: strings.Repeat("[", 100_000)})
	l.plugin(Quarantine, "100-000-brackets-in-a-member", "manifest",
		plugin{manifest: workload(`"unknown":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "," +
			oneStatement)})
	l.plugin(Harmless, "100-000-members", "",
		plugin{manifest: workload(many(100_000, func(i int) string { return fmt.Sprintf(`"m%d":0`, i) }) + "," +
			oneStatement)}).Large = true
	l.plugin(Harmless, "a-megabyte-of-zeros-behind", "",
		plugin{manifest: workload(oneStatement) + strings.Repeat("\x00", 1<<20)}).Large = true

	// Describing itself changes from call to call.
	l.plugin(Harmless, "another-one-each-time", "",
		plugin{manifest: workload(oneStatement), code: map[string][]byte{"ls_describe": join(
			// The last letter of the name goes on by one with each call.
			i32(manifestAt+33), i32(manifestAt+33), []byte{0x2d, 0, 0}, i32(1), i32add, []byte{0x3a, 0, 0},
			i64(pack(manifestAt, uint32(len(workload(oneStatement))))))}})
	l.plugin(Quarantine, "its-own-failure", "no manifest today",
		plugin{errorText: "no manifest today", code: map[string][]byte{"ls_describe": i64(-1)}})
	l.plugin(Quarantine, "its-own-failure-of-escapes", "",
		plugin{errorText: "\x1b[2J\x00\u202e<script>\xff", code: map[string][]byte{"ls_describe": i64(-1)}})
	l.plugin(Quarantine, "abi-of-version-2", "2.0", plugin{code: map[string][]byte{"ls_abi": i32(2 << 16)}})
	l.plugin(Quarantine, "abi-of-version-0", "0.0", plugin{code: map[string][]byte{"ls_abi": i32(0)}})
	l.plugin(Quarantine, "abi-negative", "", plugin{code: map[string][]byte{"ls_abi": i32(-1)}})
	l.plugin(Quarantine, "trap", trapped, plugin{code: map[string][]byte{"ls_describe": unreachable}})
}

// schemas of parameters are malformed, without end, or made to take time.
func schemas(l *list) {
	schema := func(station Stage, name, says, doc string) *File {
		return l.plugin(station, name, says, plugin{manifest: workload(`"parameters":` + doc + `,` + oneStatement)})
	}
	const not = "Schema"
	schema(Quarantine, "of-an-unknown-type", not, `{"type":"objekt"}`)
	schema(Quarantine, "a-text", "", `"object"`)
	schema(Quarantine, "a-number", "", `7`)
	schema(Quarantine, "a-list", "", `[]`)
	schema(Quarantine, "properties-a-list", not, `{"type":"object","properties":[]}`)
	schema(Quarantine, "required-a-text", not, `{"type":"object","required":"x"}`)
	schema(Quarantine, "minimum-a-text", not, `{"properties":{"a":{"minimum":"x"}}}`)
	schema(Quarantine, "pattern-broken", not, `{"properties":{"a":{"type":"string","pattern":"(["}}}`)
	schema(Quarantine, "pattern-that-goes-back", "default",
		`{"properties":{"a":{"type":"string","pattern":"^(a+)+$","default":"`+strings.Repeat("a", 5000)+`b"}}}`)
	schema(Quarantine, "pattern-with-huge-counts", not,
		`{"properties":{"a":{"type":"string","pattern":"((((a{1000}){1000}){1000}){1000})"}}}`)
	schema(Quarantine, "pattern-with-many-counts", not,
		`{"properties":{"a":{"type":"string","pattern":"(x{100}y{100}){10}`+strings.Repeat("(a|b){90}", 100)+
			`","default":"x"}}}`)
	schema(Quarantine, "pattern-of-perl", not, `{"properties":{"a":{"type":"string","pattern":"(?=a)(?<b>x)\\1"}}}`)
	schema(Quarantine, "of-a-file", not, `{"$ref":"file:///etc/passwd"}`)
	schema(Quarantine, "of-the-cloud", not, `{"$ref":"http://169.254.169.254/latest/meta-data"}`)
	schema(Quarantine, "of-a-dialect-from-afar", not, `{"$schema":"https://example.com/schema"}`)
	schema(Quarantine, "with-an-id-from-afar", not, `{"$id":"https://example.com/x","properties":{"a":{"$ref":"y"}}}`)
	schema(Quarantine, "of-itself-that-is-not-there", not, `{"properties":{"a":{"$ref":"#/$defs/x"}}}`)
	schema(Quarantine, "of-itself", not, `{"$ref":"#"}`)
	schema(Quarantine, "in-a-circle", not,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`)
	schema(Quarantine, "a-tree-without-end", not, `{"type":"object","properties":{"a":{"$ref":"#"}},"default":{}}`)
	schema(Quarantine, "a-tree-without-end-of-defaults", not,
		`{"type":"object","properties":{"a":{"$ref":"#","default":{}}}}`)
	schema(Quarantine, "all-of-itself", not, `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`)
	schema(Quarantine, "not-itself", not, `{"not":{"$ref":"#"}}`)
	schema(Quarantine, "dynamic", not,
		`{"$dynamicRef":"#x","$defs":{"x":{"$dynamicAnchor":"x","allOf":[{"$dynamicRef":"#x"}]}}}`)
	schema(Quarantine, "two-to-the-25", not,
		`{"properties":{"a":{"default":1,"$ref":"#/$defs/d25"}},"$defs":{"d0":{"type":"integer"},`+
			many(25, func(i int) string {
				return fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
			})+`}}`)
	schema(Quarantine, "5000-deep", not, strings.Repeat(`{"properties":{"a":`, 4_000)+"{}"+strings.Repeat("}}", 4_000))
	schema(Quarantine, "100-000-deep", "", strings.Repeat(`{"not":`, 100_000)+"{}"+strings.Repeat("}", 100_000))
	schema(Quarantine, "50-000-properties", not, `{"type":"object","properties":{`+
		many(50_000, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer","default":%d}`, i, i) })+`}}`).
		Large = true
	schema(Quarantine, "number-of-a-million-digits", not, `{"properties":{"a":{"type":"integer","maximum":`+
		strings.Repeat("9", 1_000_000)+`}}}`).Large = true
	schema(Quarantine, "number-with-a-huge-exponent", not,
		`{"properties":{"a":{"type":"number","multipleOf":1e-400000000,"default":1e400000000}}}`)
	schema(Harmless, "html", "", `{"properties":{"<script>":{"title":"<img src=x onerror=alert(1)>","default":"=1+1"}}}`)
	schema(Quarantine, "escapes", not, `{"properties":{"a":{"title":"a","description":"\u001b[2J"}}}`)
	schema(Quarantine, "backwards", not, `{"properties":{"a":{"title":"a","default":"\u202e"}}}`)
	schema(Harmless, "prototype", "",
		`{"properties":{"__proto__":{"default":{"admin":true}},"constructor":{"default":1}}}`)
	schema(Harmless, "false", "", `false`)
}
