package bundled_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// quickTables are those of the corpus that make test tries, one of each kind that went wrong once.
var quickTables = []string{"ticket", "composite_reference", "span", "invoice_number", "perm", "json_trigger",
	"domain_over_bytea", "parent", "auth_user_groups", "enrolment", "overlapping_keys",
	"tenant_member", "tenant_ticket", "tenant_role", "synonym"}

// TestTables runs each operation of mix on each table of testdata/tables: it succeeds every time and finds rows, or it
// is refused before the start, with the word that the file says and a cure.
func TestTables(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/tables/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	only := os.Getenv("LOADSTONE_TABLE")
	tables := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases := tableCases(t, string(text))
		tables += len(cases)
		cases = slices.DeleteFunc(cases, func(c tableCase) bool {
			return only != "" && only != c.table || testing.Short() && !slices.Contains(quickTables, c.table)
		})
		if len(cases) == 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, hosttest.Bundled(t))
			b.script(string(text))
			for _, c := range cases {
				t.Run(c.table, func(t *testing.T) { b.on(t).everyKind(c) })
			}
		})
	}
	if tables < 60 {
		t.Errorf("the corpus has %d tables", tables)
	}
}

// tableCase is a table of the corpus, with a word of the refusal for each kind that is refused.
type tableCase struct {
	table   string
	refused map[engine.Kind]string
}

var caseLine = regexp.MustCompile(`(?m)^--= ((?:(?:"[^"]+"|[^\s".]+)\.?)+)(.*)$`)

func tableCases(t *testing.T, text string) []tableCase {
	var list []tableCase
	for _, m := range caseLine.FindAllStringSubmatch(text, -1) {
		c := tableCase{table: m[1], refused: map[engine.Kind]string{}}
		for _, field := range strings.Fields(m[2]) {
			name, word, _ := strings.Cut(field, "=")
			kind, err := engine.ParseKind(name)
			if err != nil || word == "" {
				t.Fatalf("%s: %q is no refusal: %v", c.table, field, err)
			}
			c.refused[kind] = word
		}
		list = append(list, c)
	}
	return list
}

// script executes a text of many statements.
func (b *bench) script(text string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.PgConn().Exec(ctx, text).ReadAll(); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) on(t *testing.T) *bench { return &bench{T: t, host: b.host, dsn: b.dsn, db: b.db} }

// everyKind runs each kind by itself, INSERT twice, and all together: the later ones meet what the first have left.
func (b *bench) everyKind(c tableCase) {
	if !testing.Short() {
		b.each(c, engine.KindPointLookup, engine.KindRangeScan)
	}
	b.each(c, engine.KindUpdate, engine.KindInsert)
	if !testing.Short() {
		b.together(c)
	}
	b.each(c, engine.KindInsert, engine.KindDelete)
}

func (b *bench) each(c tableCase, kinds ...engine.Kind) {
	for _, kind := range kinds {
		params := fmt.Sprintf(`{"weights":{"%s":1},"scan_length":5}`, kind)
		plan, err := b.plan(c.table, params, nil)
		word := c.refused[kind]
		switch {
		case err != nil && kind == engine.KindDelete && strings.Contains(err.Error(), "it is empty"):
			// Few rows: those before have deleted all of them.
		case err != nil && word == "":
			b.Errorf("%s is refused: %v %s", kind, err, fieldsOf(err))
		case err != nil && !strings.Contains(err.Error()+fieldsOf(err), word):
			b.Errorf("%s is refused without the word %q: %v %s", kind, word, err, fieldsOf(err))
		case err != nil:
			if e := engine.AsError(err); e.Hint == "" && (len(e.Fields) == 0 || e.Fields[0].Hint == "") {
				b.Errorf("the refusal of %s has no hint: %v", kind, err)
			}
		case word != "":
			b.Errorf("%s is not refused", kind)
			b.count(kind, plan, params)
		default:
			b.count(kind, plan, params)
		}
	}
}

// together runs all kinds that are not refused in one run: what one of them does is no error of another.
func (b *bench) together(c tableCase) {
	var weights []string
	for _, kind := range []engine.Kind{engine.KindPointLookup, engine.KindUpdate, engine.KindInsert, engine.KindDelete} {
		if c.refused[kind] == "" {
			weights = append(weights, fmt.Sprintf(`"%s":1`, kind))
		}
	}
	if len(weights) == 0 {
		return
	}
	params := `{"weights":{` + strings.Join(weights, ",") + `}}`
	plan, err := b.plan(c.table, params, nil)
	if err != nil {
		b.Errorf("all together: %v", err)
		return
	}
	b.count(engine.KindDelete, plan, params) // what was deleted may be looked for
}

func fieldsOf(err error) string {
	var e *engine.Error
	if !errors.As(err, &e) {
		return "(not for users)"
	}
	return fmt.Sprint(e.Hint, e.Fields)
}

// count runs 100 operations of the first key slot and 100 of the last, and counts errors and rows.
func (b *bench) count(kind engine.Kind, plan *engine.Plan, params string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w, err := b.host.Workload(ctx, plan.Workload.SHA256)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := b.db.Connect(ctx, plan.Statements)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	failed, misses, first := 0, 0, error(nil)
	for _, slot := range []int{0, 3} {
		s, err := w.Open(ctx, plugin.OpenRequest{Seed: 7, KeySlot: slot, KeySlots: 4, Params: json.RawMessage(params),
			Tables: plan.Tables, Pools: plan.Pools}, plan.Statements)
		if err != nil {
			b.Errorf("%s: %v", kind, err)
			return
		}
		var batch plugin.Batch
		if err := s.Fill(&batch, 100); err != nil {
			b.Errorf("%s: %v", kind, err)
		}
		for _, op := range batch.Ops {
			var res target.Result
			if err := conn.Exec(ctx, &batch, op, &res); err != nil {
				failed, first = failed+1, err
			} else if res.Rows == 0 {
				misses++
			}
		}
		_ = s.Close()
	}
	if failed > 0 {
		b.Errorf("%s: %d of 200 failed: %v (%s)", kind, failed, first, plan.Statements[0].SQL)
	}
	// Rows that were deleted are looked for again.
	if misses > 0 && kind != engine.KindDelete {
		b.Errorf("%s: %d of 200 had no row", kind, misses)
	}
}
