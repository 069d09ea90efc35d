package main

import (
	"testing"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

func BenchmarkValues(b *testing.B) {
	p, err := readParams(nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []sdk.Column{{Name: "bigint", Type: sdk.I64}, {Name: "timestamp", Type: sdk.Timestamp},
		{Name: "text", Type: sdk.Text},
		{Name: "numeric", Type: sdk.Text, DBType: "numeric(12,2)"}, {Name: "uuid", Type: sdk.Text, DBType: "uuid"}} {
		b.Run(c.Name, func(b *testing.B) {
			v := newValues(c, &p)
			r := gen.NewRand(1, 0)
			var batch sdk.Batch
			for n := range b.N {
				if n%128 == 0 {
					batch.Reset()
					batch.Row()
				}
				v.put(&batch, r)
			}
		})
	}
}
