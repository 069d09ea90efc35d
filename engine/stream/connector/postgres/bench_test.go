package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/stream/connector/postgres"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// BenchmarkRows writes rows of five columns in batches of 1024, as sources bring them.
func BenchmarkRows(b *testing.B) {
	dsn := pgtest.Start(b).NewDatabase(b)
	conn, err := pgx.Connect(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(b.Context(), "CREATE TABLE t (at timestamptz, id int8, n int8, f float8, t text)"); err != nil {
		b.Fatal(err)
	}
	columns := []column.Column{{Name: "at", Type: column.TimestampType}, {Name: "id", Type: column.Int64Type},
		{Name: "n", Type: column.Int64Type}, {Name: "f", Type: column.Float64Type}, {Name: "t", Type: column.TextType}}
	batch := &column.Batch{}
	batch.Reset(columns)
	for i := range 1024 {
		row(batch, 1_700_000_000_000_000+i*1000, i, i%7, float64(i)/3, "CHECKOUT")
	}
	s, err := postgres.Open(b.Context(), postgres.Options{Dial: dialer(dsn), Table: "t", Columns: columns})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		if err := s.Write(batch); err != nil {
			b.Fatal(err)
		}
		rows += batch.N
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
