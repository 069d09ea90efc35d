package record

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine"
)

// inner is what a row says about transactions.
type inner struct {
	Seq         uint32 `parquet:"seq"`
	Kind        string `parquet:"kind"`
	StatementID string `parquet:"statement_id"`
	Retries     int32  `parquet:"retries"`
	Position    int32  `parquet:"position"`
	RolledBack  bool   `parquet:"rolled_back"`
}

// TestStatementsOfTransactions: they are rows with a position, and a transaction
// goes by the name that its first statement gives it.
func TestStatementsOfTransactions(t *testing.T) {
	opts := testOptions(t.TempDir())
	opts.Statements = []engine.Statement{{ID: "read", Kind: engine.KindPointLookup},
		{ID: "debit", Kind: engine.KindUpdate, Transaction: "payment"}}
	w, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	const begin, commit, rollback = engine.FirstControl, engine.FirstControl + 1, engine.FirstControl + 2
	recs := []engine.Execution{
		{Seq: 0, Statement: 0, Kind: engine.KindPointLookup, Success: true},
		{Seq: 1, Statement: begin, Kind: engine.KindGenericSQL, Position: 1, Success: true},
		{Seq: 1, Statement: 1, Kind: engine.KindUpdate, Position: 2, ErrorID: 1},
		{Seq: 1, Statement: rollback, Kind: engine.KindGenericSQL, Position: 3, Success: true},
		{Seq: 1, Statement: begin, Kind: engine.KindGenericSQL, Position: 1, Retries: 1, Success: true},
		{Seq: 1, Statement: 1, Kind: engine.KindUpdate, Position: 2, Retries: 1, Success: true},
		{Seq: 1, Statement: commit, Kind: engine.KindGenericSQL, Position: 3, Retries: 1, Success: true},
		{Seq: 1, Statement: 1, Kind: engine.KindTransaction, Retries: 1, Success: true},
		{Seq: 2, Statement: 0, Kind: engine.KindTransaction, Success: true, RolledBack: true},
		{Seq: 3, Statement: 7, Kind: engine.KindTransaction, Success: true},
		{Seq: 3, Statement: engine.FirstControl + 9, Position: 258, Success: true},
	}
	if err := w.Write(recs); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(opts.Dir, name(1))
	got, err := parquet.ReadFile[inner](path)
	if err != nil {
		t.Fatal(err)
	}
	want := []inner{{0, "POINT_LOOKUP", "read", 0, 0, false}, {1, "GENERIC_SQL", "BEGIN", 0, 1, false},
		{1, "UPDATE", "debit", 0, 2, false},
		{1, "GENERIC_SQL", "ROLLBACK", 0, 3, false}, {1, "GENERIC_SQL", "BEGIN", 1, 1, false},
		{1, "UPDATE", "debit", 1, 2, false},
		{1, "GENERIC_SQL", "COMMIT", 1, 3, false}, {1, "TRANSACTION", "payment", 1, 0, false},
		{2, "TRANSACTION", "read", 0, 0, true},
		{3, "TRANSACTION", "", 0, 0, false}, {3, "POINT_LOOKUP", "", 0, 258, false}}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are\n%+v, expected\n%+v", got, want)
	}
	p, err := OpenPart(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	position, err := p.Int32s(0, ColPosition, nil)
	if err != nil || !slices.Equal(position, []int32{0, 1, 2, 3, 1, 2, 3, 0, 0, 0, 258}) {
		t.Errorf("positions %v, %v", position, err)
	}
	rolledBack, err := p.Bools(0, ColRolledBack, nil)
	if err != nil || !rolledBack[8] || slices.Contains(rolledBack[:8], true) {
		t.Errorf("rolled back %v, %v", rolledBack, err)
	}
}

// TestPartsOfVersion1 reads a part without the columns of transactions.
func TestPartsOfVersion1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	// The row of writer_test.go is that of version 1.
	w := parquet.NewGenericWriter[row](f, parquet.KeyValueMetadata(metaSchemaVersion, "1"))
	if _, err := w.Write([]row{{RunID: "r", Kind: "INSERT", Retries: 3}, {RunID: "r", Kind: "UPDATE"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPart(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	position, err := p.Int32s(0, ColPosition, []int32{9, 9, 9})
	rolledBack, err2 := p.Bools(0, ColRolledBack, []bool{true, true})
	retries, err3 := p.Int32s(0, ColRetries, nil)
	if err != nil || err2 != nil || err3 != nil ||
		!reflect.DeepEqual([]any{position, rolledBack, retries}, []any{[]int32{0, 0}, []bool{false, false}, []int32{3, 0}}) {
		t.Errorf("%v %v %v, %v %v %v", position, rolledBack, retries, err, err2, err3)
	}
	if p.Artifact().SchemaVersion != 1 {
		t.Errorf("%+v", p.Artifact())
	}
}
