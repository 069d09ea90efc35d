// Package manifest reads what a plugin says of itself: its manifest, its tables and statements,
// and the schema of its parameters. A guest may be hostile: what is read is bounded before it is
// parsed, checked against the limits of the ABI, and free of what a terminal would obey.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

var (
	nameForm    = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
	versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$`)
)

// The documents of a guest, read liberally: unknown members are ignored, and
// short forms are taken where they are clear.
type (
	looseManifest struct {
		Kind        string           `json:"kind"`
		Name        string           `json:"name"`
		Version     looseText        `json:"version"`
		Title       string           `json:"title"`
		Description string           `json:"description"`
		Author      string           `json:"author"`
		Parameters  json.RawMessage  `json:"parameters"`
		Tables      []looseTable     `json:"tables"`
		TablesVary  bool             `json:"tables_vary"`
		Feed        bool             `json:"feed"`
		Observes    bool             `json:"observes"`
		Statements  []looseStatement `json:"statements"`
		Driver      string           `json:"driver"`
		Dialect     string           `json:"dialect"`
		Kinds       []string         `json:"kinds"`
		Supports    *plugin.Supports `json:"supports"`
		Sends       *plugin.Sends    `json:"sends"`
	}
	looseTable struct {
		Name     string        `json:"name"`
		Columns  []looseColumn `json:"columns"`
		Types    []string      `json:"types"` // of columns that are names alone
		Key      looseList     `json:"key"`
		Rows     int64         `json:"rows"`
		AnyShape bool          `json:"any_shape"`
		Empty    bool          `json:"empty"`
		SizedBy  string        `json:"sized_by"`
		Varies   bool          `json:"varies"`
		Computed bool          `json:"computed_keys"`
		OwnKeys  bool          `json:"own_keys"`
		Inserts  bool          `json:"inserts"`
		Indexes  []looseIndex  `json:"indexes"`
		Options  looseSQL      `json:"options"`
	}
	looseIndex struct {
		Columns looseList `json:"columns"`
		Unique  bool      `json:"unique"`
		Include looseList `json:"include"`
	}
	looseStatement struct {
		ID      looseText   `json:"id"`
		Kind    string      `json:"kind"`
		Table   string      `json:"table"`
		Binds   []looseBind `json:"binds"`
		Columns []looseBind `json:"columns"`
		Writes  *bool       `json:"writes"`
		Limit   int         `json:"limit"`
		SQL     looseSQL    `json:"sql"`
		// Transaction names the transactions that begin with it.
		Transaction string           `json:"transaction"`
		Param       string           `json:"param"`
		Note        string           `json:"note"`
		Hint        string           `json:"hint"`
		NoRowsHint  string           `json:"no_rows_hint"`
		BindOrder   map[string][]int `json:"bind_order"`
	}
)

// looseText is a string or a number.
type looseText string

func (t *looseText) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil {
		*t = looseText(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return errors.New("expected a text")
	}
	*t = looseText(n)
	return nil
}

// looseList is a list of strings, or one string.
type looseList []string

func (l *looseList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = nil
		if one != "" {
			*l = looseList{one}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

// looseBind is {name, type, column}, or one text: the column or the type of a
// bind, the name of a result column.
type looseBind struct {
	bare string
	engine.Bind
}

func (l *looseBind) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &l.bare) == nil {
		return nil
	}
	return json.Unmarshal(b, &l.Bind)
}

// looseColumn is {name, type, …} or "name type".
type looseColumn struct {
	Name     string       `json:"name"`
	Type     string       `json:"type"`
	Nullable bool         `json:"nullable"`
	DBType   looseSQL     `json:"db_type"`
	Fill     *plugin.Fill `json:"fill"`
}

func (c *looseColumn) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		c.Name, c.Type, _ = strings.Cut(s, " ")
		return nil
	}
	type plain looseColumn
	return json.Unmarshal(b, (*plain)(c))
}

// looseSQL is texts by dialect; one text alone is for every dialect ("*").
type looseSQL map[string]string

func (s *looseSQL) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*s = nil
		if one != "" {
			*s = looseSQL{"*": one}
		}
		return nil
	}
	return json.Unmarshal(b, (*map[string]string)(s))
}

// Parse reads and checks what ls_describe answered.
func Parse(doc []byte) (plugin.Manifest, error) {
	// C counts the zero byte at the end of a text as part of it.
	doc = bytes.TrimRight(doc, "\x00")
	var in looseManifest
	if err := Unmarshal(doc, &in, maxManifestValues); err != nil {
		return plugin.Manifest{}, fmt.Errorf("its manifest is not the JSON that is expected: %w", err)
	}
	m := plugin.Manifest{Kind: strings.ToLower(in.Kind), Name: in.Name, Version: string(in.Version),
		Title: Clean([]byte(in.Title), 200), Description: Clean([]byte(in.Description), 2000),
		Author:     Clean([]byte(in.Author), 200),
		Parameters: in.Parameters, TablesVary: in.TablesVary, Feed: in.Feed, Observes: in.Observes, Driver: in.Driver,
		Dialect: in.Dialect}
	if m.Kind != plugin.KindWorkload && m.Kind != plugin.KindAdapter {
		return m, fmt.Errorf("its manifest has the kind %q; %q and %q are possible", Clean([]byte(in.Kind), 50),
			plugin.KindWorkload, plugin.KindAdapter)
	}
	if !nameForm.MatchString(m.Name) {
		return m, fmt.Errorf("its name %q is not one: lower-case letters, digits, '-' and '_', at most 64",
			quoteSafe(in.Name))
	}
	if m.Version == "" {
		m.Version = "0.0.0"
	}
	if !versionForm.MatchString(m.Version) {
		return m, fmt.Errorf("its version %q is not one: letters, digits, '.', '+' and '-', at most 64",
			quoteSafe(m.Version))
	}
	if bytes.Equal(bytes.TrimSpace(m.Parameters), []byte("null")) {
		m.Parameters = nil
	}
	if err := checkSchema(m.Parameters); err != nil {
		return m, err
	}
	for _, k := range in.Kinds {
		kind, err := engine.ParseKind(strings.ToUpper(Clean([]byte(k), 50)))
		if err != nil {
			return m, fmt.Errorf("its manifest: %w", err)
		}
		m.Kinds = append(m.Kinds, kind)
	}
	if s := in.Supports; s != nil {
		s.Reason, s.Instead = Clean([]byte(s.Reason), 500), Clean([]byte(s.Instead), 500)
		m.Supports = s
	}
	if s := in.Sends; s != nil {
		for _, list := range [][]string{s.Query, s.Statements, s.DDL, s.Session} {
			if slices.ContainsFunc(list, func(text string) bool { return !plain(text) }) {
				return m, errors.New("a pattern of what it sends contains control characters")
			}
		}
		if err := s.Check(); err != nil {
			return m, fmt.Errorf("what it sends: %w", err)
		}
		m.Sends = s
	}
	var err error
	if m.Tables, err = checkTables(in.Tables); err != nil {
		return m, err
	}
	if m.Statements, err = checkStatements(in.Statements, m.Tables); err != nil {
		return m, err
	}
	for what, name := range map[string]string{"its driver": m.Driver, "its dialect": m.Dialect} {
		if err := checkName(what, name); err != nil {
			return m, err
		}
	}
	if m.Kind == plugin.KindAdapter && m.Driver == "" {
		return m, errors.New("its manifest names no driver; an adapter needs one")
	}
	if m.Dialect == "" {
		m.Dialect = m.Driver
	}
	return m, nil
}

// quoteSafe is a text of a guest for a sentence that quotes it (%q): what is not shown is spelled out there, as it may
// be what the text is refused for.
func quoteSafe(text string) string {
	const most = 80
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// Tables reads the tables that a plugin answered when it was asked for them.
func Tables(doc []byte) ([]plugin.LogicalTable, error) {
	var answer struct {
		Tables []looseTable `json:"tables"`
	}
	if err := Unmarshal(doc, &answer, maxManifestValues); err != nil {
		return nil, &MalformedError{err}
	}
	return checkTables(answer.Tables)
}

// The most tables of a workload, and rows of a sample table.
const (
	maxTables = 256
	maxRows   = 1_000_000_000_000
)

func checkTables(in []looseTable) ([]plugin.LogicalTable, error) {
	if len(in) > maxTables {
		return nil, fmt.Errorf("it declares %d tables, the limit is %d", len(in), maxTables)
	}
	var list []plugin.LogicalTable
	seen := map[string]bool{}
	for i := range in {
		if name := in[i].Name; name == "" || seen[name] {
			return nil, fmt.Errorf("its table %q has no name or the name of another", Clean([]byte(name), 80))
		}
		seen[in[i].Name] = true
		out, err := checkTable(&in[i])
		if err != nil {
			return nil, err
		}
		list = append(list, out)
	}
	return list, nil
}

func checkTable(t *looseTable) (plugin.LogicalTable, error) {
	out := plugin.LogicalTable{Name: t.Name, Key: t.Key, Rows: t.Rows, AnyShape: t.AnyShape, Empty: t.Empty,
		SizedBy: Clean([]byte(t.SizedBy), 80), Varies: t.Varies, ComputedKeys: t.Computed, OwnKeys: t.OwnKeys,
		Inserts: t.Inserts, Options: t.Options}
	if err := checkName("the name of its table", t.Name); err != nil {
		return out, err
	}
	if len(t.Types) > 0 && len(t.Types) != len(t.Columns) {
		return out, fmt.Errorf("its table %q has %d columns and %d types", t.Name, len(t.Columns), len(t.Types))
	}
	columns := map[string]bool{}
	for i, c := range t.Columns {
		if c.Type == "" && len(t.Types) > 0 {
			c.Type = t.Types[i]
		}
		column, err := checkColumn(t.Name, i, &c, columns)
		if err != nil {
			return out, err
		}
		out.Columns = append(out.Columns, column)
	}
	if len(out.Columns) > abi.MaxArgs {
		return out, fmt.Errorf("its table %q has %d columns, the limit is %d", t.Name, len(out.Columns), abi.MaxArgs)
	}
	for _, k := range t.Key {
		if !columns[k] && len(columns) > 0 {
			return out, fmt.Errorf("the key of its table %q names the column %q, which it does not have", t.Name,
				Clean([]byte(k), 80))
		}
	}
	if t.Rows < 0 || t.Rows > maxRows || t.Empty && t.Rows > 0 {
		return out, fmt.Errorf("its table %q begins with %d rows; 1 to %d are possible, or \"empty\"", t.Name, t.Rows,
			int64(maxRows))
	}
	if err := checkTexts(fmt.Sprintf("an option of its table %q", t.Name), t.Options, maxFill); err != nil {
		return out, err
	}
	return out, checkIndexes(t, &out, columns)
}

func checkIndexes(t *looseTable, out *plugin.LogicalTable, columns map[string]bool) error {
	for _, x := range t.Indexes {
		if len(x.Columns) == 0 {
			return fmt.Errorf("an index of its table %q has no columns", t.Name)
		}
		for _, c := range append(slices.Clone(x.Columns), x.Include...) {
			if !columns[c] {
				return fmt.Errorf("an index of its table %q names the column %q, which it does not have", t.Name,
					Clean([]byte(c), 80))
			}
		}
		out.Indexes = append(out.Indexes, plugin.LogicalIndex{Columns: x.Columns, Unique: x.Unique, Include: x.Include})
	}
	return nil
}

// checkColumn reads the i-th column of a table; columns are the names before it.
func checkColumn(table string, i int, c *looseColumn, columns map[string]bool) (out plugin.LogicalColumn, err error) {
	if err := checkName(fmt.Sprintf("column %d of its table %q,", i+1, table), c.Name); err != nil {
		return out, err
	}
	if err := checkTexts(fmt.Sprintf("the type of column %q of its table %q", c.Name, table), c.DBType,
		maxFill); err != nil {
		return out, err
	}
	vt := strings.ToLower(c.Type)
	if _, ok := abi.ParseType(vt); !ok {
		return out, fmt.Errorf("column %q of its table %q has the unknown type %q", Clean([]byte(c.Name), 80), table,
			Clean([]byte(c.Type), 80))
	}
	if c.Name == "" || columns[c.Name] {
		return out, fmt.Errorf("a column of its table %q has no name or the name of another", table)
	}
	if err := checkFill(c.Fill); err != nil {
		return out, fmt.Errorf("column %q of its table %q %w", c.Name, table, err)
	}
	columns[c.Name] = true
	return plugin.LogicalColumn{Name: c.Name, Type: engine.ValueType(vt), Nullable: c.Nullable, DBType: c.DBType,
		Fill: c.Fill}, nil
}

// fills are the ways to make a sample value; see sdk.Fill.
var fills = []string{"number", "block", "constant", "integer", "decimal", "choice", "letters", "time"}

// checkFill refuses what no adapter could make SQL of.
func checkFill(f *plugin.Fill) error {
	switch {
	case f == nil:
		return nil
	case !slices.Contains(fills, f.As):
		return fmt.Errorf("is filled as %q; one of %s is possible", Clean([]byte(f.As), 50), strings.Join(fills, ", "))
	case !plain(f.Prefix) || slices.ContainsFunc(f.Values, func(v string) bool { return !plain(v) }):
		return errors.New("is filled with control characters")
	case len(f.Values) > 1000:
		return fmt.Errorf("is filled with a choice of %d values, the limit is 1000", len(f.Values))
	case len(f.Prefix) > maxFill || slices.ContainsFunc(f.Values, func(v string) bool { return len(v) > maxFill }):
		return fmt.Errorf("is filled with a text that is longer than %d bytes", maxFill)
	}
	return nil
}
