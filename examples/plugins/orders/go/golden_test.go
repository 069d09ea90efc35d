package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/trial"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

var update = flag.Bool("update", false, "write the golden files anew, from the native generator")

// languages in which the generator is written; ../dist holds what was built of each.
var languages = []string{"go", "c", "assemblyscript", "rust"}

// golden is a file of ../golden. An SDK of another language can be tested by it too.
type golden struct {
	// About says what the case is for.
	About string `json:"about"`
	// Document is what ls_open gets.
	Document json.RawMessage `json:"document"`
	// Max is what ls_fill is asked for, over and over.
	Max []int `json:"max"`
	// First are the operations of the first batch, one line each, and Bytes is that batch.
	First []string `json:"first"`
	Bytes string   `json:"bytes"`
	// Batches were taken; SHA256 is the hash over all their bytes.
	Batches int    `json:"batches"`
	SHA256  string `json:"sha256"`
	// Rows are the first sample rows with the same parameters.
	Rows []string `json:"rows"`
}

// loaded are the built modules, in one host for the whole test binary.
type loaded struct {
	host      *host.Host
	workloads map[string]plugin.Workload
	files     map[string][]byte
}

var modules loaded

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if modules.host != nil {
		if err := modules.host.Close(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func built(t testing.TB) *loaded {
	t.Helper()
	if modules.host != nil {
		return &modules
	}
	h, err := host.New(context.Background(), host.Options{CacheDir: bundledtest.CacheDir(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	// Set as a whole or not at all: the next test says the same of a module that is not built.
	defer func() {
		if modules.host == nil {
			_ = h.Close(context.Background())
		}
	}()
	all := loaded{host: h, workloads: map[string]plugin.Workload{}, files: map[string][]byte{}}
	for _, language := range languages {
		file, err := os.ReadFile(filepath.Join("..", "dist", language+".wasm"))
		if err != nil {
			t.Fatalf("the example in %s is not built; make examples does it: %v", language, err)
		}
		info, err := h.Register(context.Background(), file, false)
		if err != nil {
			t.Fatalf("%s: %v", language, err)
		}
		if all.workloads[language], err = h.Workload(context.Background(), info.SHA256); err != nil {
			t.Fatal(err)
		}
		all.files[language] = file
	}
	modules = all
	return &modules
}

// text writes an operation as golden files do.
func text(op abi.Op) string {
	var b strings.Builder
	switch op.Statement {
	case abi.StatementBegin:
		b.WriteString("BEGIN")
	case abi.StatementCommit:
		b.WriteString("COMMIT")
	case abi.StatementRollback:
		b.WriteString("ROLLBACK")
	case abi.StatementDelay:
		b.WriteString("DELAY")
	default:
		fmt.Fprintf(&b, "%d", op.Statement)
	}
	for _, v := range op.Args {
		b.WriteString(" " + abi.TypeName(v.Type))
		switch v.Type {
		case abi.TypeNull:
		case abi.TypeF64:
			fmt.Fprintf(&b, " %v", v.F)
		case abi.TypeText:
			fmt.Fprintf(&b, " %q", v.Data)
		case abi.TypeBytes:
			fmt.Fprintf(&b, " %x", v.Data)
		case abi.TypeRef:
			fmt.Fprintf(&b, " %d.%d", v.I>>8, v.I&0xff)
		default:
			fmt.Fprintf(&b, " %d", v.I)
		}
	}
	return b.String()
}

// natively runs a case in the emulator.
func natively(t *testing.T, c golden) golden {
	t.Helper()
	g := sdk.NewWorkloadGuest(orders{})
	if err := g.Open(c.Document); err != nil {
		t.Fatal(err)
	}
	rows, err := g.Rows(0, 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	c.Rows = texts(t, rows)
	sum := sha256.New()
	for i := range c.Batches {
		b, err := g.Fill(c.Max[i%len(c.Max)])
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			c.First, c.Bytes = texts(t, b), hex.EncodeToString(b)
		}
		sum.Write(b)
	}
	c.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return c
}

func texts(t *testing.T, batch []byte) (lines []string) {
	t.Helper()
	ops, err := abi.Decode(batch)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		lines = append(lines, text(op))
	}
	return lines
}

func frozen(m plugin.Manifest) (list []engine.Statement) {
	for _, s := range m.Statements {
		list = append(list, engine.Statement{ID: s.ID, Kind: s.Kind, Table: s.Table, SQL: "SELECT 1", Binds: s.Binds,
			Columns: s.Columns, Writes: s.Writes})
	}
	return list
}

// throughWasm takes the batches of a case from a module, as a run would.
func throughWasm(t fataler, w plugin.Workload, document []byte, batches int, most []int) (all [][]byte) {
	var req plugin.OpenRequest
	if err := json.Unmarshal(document, &req); err != nil {
		t.Fatalf("the document: %v", err)
	}
	s, err := w.Open(context.Background(), req, frozen(w.Info().Manifest))
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	defer s.Close()
	var b plugin.Batch
	for i := range batches {
		if err := s.Fill(&b, most[i%len(most)]); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
		all = append(all, bytes.Clone(b.Data))
	}
	return all
}

type fataler interface{ Fatalf(string, ...any) }

// TestGoldenBatches proves that every language gives the stream of the golden
// files, which is the native generator's.
func TestGoldenBatches(t *testing.T) {
	files, err := filepath.Glob("../golden/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want golden
			if err := json.Unmarshal(file, &want); err != nil {
				t.Fatal(err)
			}
			got := natively(t, want)
			if *update {
				writeGolden(t, path, got)
				want = got
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("the native generator gives\n%+v\nexpected\n%+v", got, want)
			}
			for _, language := range languages {
				t.Run(language, func(t *testing.T) { compare(t, built(t).workloads[language], want) })
			}
		})
	}
}

func writeGolden(t *testing.T, path string, c golden) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, w plugin.Workload, want golden) {
	batches := throughWasm(t, w, want.Document, want.Batches, want.Max)
	if first := texts(t, batches[0]); !reflect.DeepEqual(first, want.First) {
		t.Errorf("the first batch is\n%s\nexpected\n%s", strings.Join(first, "\n"), strings.Join(want.First, "\n"))
	}
	sum := sha256.New()
	for _, b := range batches {
		sum.Write(b)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
		t.Errorf("the hash of %d batches is %s, expected %s", want.Batches, got, want.SHA256)
	}
	var req plugin.OpenRequest
	if err := json.Unmarshal(want.Document, &req); err != nil {
		t.Fatal(err)
	}
	rows, err := w.Rows(context.Background(), req.Params, 0, 0, len(want.Rows))
	if err != nil {
		t.Fatal(err)
	}
	natively := sdktest.Workload(orders{})
	if err := natively.Open(want.Document); err != nil {
		t.Fatal(err)
	}
	expected, err := natively.Rows(0, 0, len(want.Rows))
	if err != nil {
		t.Fatal(err)
	}
	if rows.Len() != len(expected) {
		t.Fatalf("%d rows, expected %d", rows.Len(), len(expected))
	}
	for i, row := range expected {
		for c := range row.Args {
			if got, want := rows.Value(i, c), plain(row.Args[c]); !reflect.DeepEqual(got, want) {
				t.Errorf("row %d, column %d is %v, expected %v", i, c, got, want)
			}
		}
	}
}

// TestAnyDocument compares the languages on documents that nobody thought of.
func TestAnyDocument(t *testing.T) {
	m := built(t)
	rapid.Check(t, func(t *rapid.T) {
		share := func(name string) float64 { return float64(rapid.IntRange(0, 400).Draw(t, name)) / 1000 }
		lo := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "key_min")
		rows := rapid.Int64Range(1, 1<<rapid.IntRange(0, 60).Draw(t, "bits")).Draw(t, "rows")
		document, err := json.Marshal(map[string]any{
			"seed": rapid.Int64().Draw(t, "seed"), "key_slot": rapid.IntRange(0, 63).Draw(t, "slot"), "key_slots": 64,
			"pools": []any{},
			"params": map[string]any{"pay": share("pay"), "list": share("list"), "add": share("add"),
				"rollback":    share("rollback"),
				"keys":        rapid.SampledFrom([]string{"zipfian", "uniform"}).Draw(t, "keys"),
				"theta":       float64(rapid.IntRange(0, 5000).Draw(t, "theta")) / 1000,
				"note_length": rapid.IntRange(0, 200).Draw(t, "note_length"),
				"pause_us":    rapid.SampledFrom([]int{0, 0, 7}).Draw(t, "pause")},
			"tables": []any{map[string]any{"name": "orders", "physical_name": rapid.String().Draw(t, "physical_name"),
				"key": []string{"id"}, "rows": rows,
				"key_min": lo, "key_max": lo + rows - 1, "dense": true, "columns": []any{}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		most := []int{rapid.IntRange(1, 300).Draw(t, "max")}
		guest := sdk.NewWorkloadGuest(orders{})
		if err := guest.Open(document); err != nil {
			t.Fatal(err)
		}
		const batches = 8
		var want [][]byte
		for range batches {
			b, err := guest.Fill(most[0])
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, bytes.Clone(b))
		}
		for _, language := range languages {
			for i, got := range throughWasm(t, m.workloads[language], document, batches, most) {
				if !bytes.Equal(got, want[i]) {
					t.Fatalf("%s: batch %d differs from the native one", language, i)
				}
			}
		}
	})
}

// TestTheyAreTheSamePlugin compares what the modules say of themselves, and takes
// each through the conformance suite.
func TestTheyAreTheSamePlugin(t *testing.T) {
	m := built(t)
	want := m.workloads["go"].Info().Manifest
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			got := m.workloads[language].Info().Manifest
			gotSchema, wantSchema := schemaOf(t, got), schemaOf(t, want)
			if !reflect.DeepEqual(gotSchema, wantSchema) {
				t.Errorf("the parameters are\n%v\nexpected\n%v", gotSchema, wantSchema)
			}
			a, b := got, want
			a.Parameters, b.Parameters = nil, nil
			if !reflect.DeepEqual(a, b) {
				t.Errorf("the manifest is\n%+v\nexpected\n%+v", a, b)
			}
			report, err := trial.Conformance(context.Background(), m.files[language], nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range report.Checks {
				if !c.Passed {
					t.Errorf("%s: %s", c.Name, c.Message)
				}
			}
		})
	}
}

func schemaOf(t *testing.T, m plugin.Manifest) (v any) {
	t.Helper()
	if err := json.Unmarshal(m.Parameters, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestAnEmptyTableIsRefused compares the sentence that users see.
func TestAnEmptyTableIsRefused(t *testing.T) {
	for _, language := range languages {
		w := built(t).workloads[language]
		var req plugin.OpenRequest
		if err := json.Unmarshal([]byte(`{"key_slots":1,"params":{},"tables":[{"name":"orders","columns":[],"key":["id"]}]}`),
			&req); err != nil {
			t.Fatal(err)
		}
		_, err := w.Open(context.Background(), req, frozen(w.Info().Manifest))
		if !errors.Is(err, plugin.ErrFailed) || !strings.Contains(err.Error(), "the table of orders is empty") {
			t.Errorf("%s: %v", language, err)
		}
	}
}

// plain is a value as plugin.Rows gives it.
func plain(v abi.Value) any {
	switch v.Type {
	case abi.TypeI64:
		return v.I
	case abi.TypeF64:
		return v.F
	case abi.TypeText:
		return string(v.Data)
	case abi.TypeBytes:
		return v.Data
	case abi.TypeBool:
		return v.I == 1
	case abi.TypeTimestamp:
		return time.UnixMicro(v.I).UTC()
	}
	return nil
}
