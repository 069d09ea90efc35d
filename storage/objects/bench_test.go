package objects_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/objects"
	"github.com/loadstone-db/loadstone/storage/objects/objectstest"
)

// BenchmarkPut stores a file of the same disk: it is read, summed, written and made
// durable. BenchmarkSum is what reading and summing alone take of it.
func BenchmarkPut(b *testing.B) {
	for _, megabytes := range []int{64, 1024} {
		b.Run(fmt.Sprintf("%dMB", megabytes), func(b *testing.B) {
			f, err := objects.OpenFolder(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			a, path := bigFile(b, megabytes)
			b.SetBytes(a.SizeBytes)
			for b.Loop() {
				if err := f.Put(b.Context(), a, record.LocalFile(path)); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := f.Delete(context.Background(), a.RunID); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

func BenchmarkSum(b *testing.B) {
	a, path := bigFile(b, 64)
	b.SetBytes(a.SizeBytes)
	for b.Loop() {
		if _, _, err := record.Checksum(path); err != nil {
			b.Fatal(err)
		}
	}
}

// bigFile is a durable file of so many MB.
func bigFile(b *testing.B, megabytes int) (engine.Artifact, string) {
	b.Helper()
	f, err := os.CreateTemp(b.TempDir(), "part")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	sum, content := sha256.New(), objectstest.Content(1<<20, 1)
	for range megabytes {
		if _, err := io.MultiWriter(f, sum).Write(content); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return engine.Artifact{RunID: "run", Name: "a.parquet", SizeBytes: int64(megabytes) << 20,
		SHA256: hex.EncodeToString(sum.Sum(nil))}, f.Name()
}
