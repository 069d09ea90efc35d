package abi

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, n := rapid.Uint32().Draw(t, "ptr"), rapid.Uint32().Draw(t, "len")
		if gotP, gotN := Unpack(Pack(p, n)); gotP != p || gotN != n {
			t.Fatalf("%d, %d became %d, %d", p, n, gotP, gotN)
		}
	})
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	var b Batch // reused, as generators do
	rapid.Check(t, func(t *rapid.T) {
		b.Reset()
		var want []Op
		for range rapid.IntRange(0, 10).Draw(t, "operations") {
			op := Op{Statement: rapid.Uint16().Draw(t, "statement")}
			b.Op(op.Statement)
			for range rapid.IntRange(0, 8).Draw(t, "arguments") {
				v := Value{Type: uint8(rapid.IntRange(0, 7).Draw(t, "type"))}
				switch v.Type {
				case TypeNull:
					b.Null()
				case TypeI64:
					v.I = rapid.Int64().Draw(t, "i")
					b.I64(v.I)
				case TypeTimestamp:
					v.I = rapid.Int64().Draw(t, "i")
					b.Timestamp(v.I)
				case TypeF64:
					v.F = rapid.Float64().Draw(t, "f")
					b.F64(v.F)
				case TypeBool:
					yes := rapid.Bool().Draw(t, "b")
					if yes {
						v.I = 1
					}
					b.Bool(yes)
				case TypeRef:
					k, c := rapid.Byte().Draw(t, "k"), rapid.Byte().Draw(t, "c")
					v.I = int64(k)<<8 | int64(c)
					b.Ref(k, c)
				case TypeText:
					v.Data = []byte(rapid.String().Draw(t, "s"))
					if rapid.Bool().Draw(t, "in place") {
						copy(b.TextSpace(len(v.Data)), v.Data)
					} else {
						b.TextBytes(v.Data)
					}
				case TypeBytes:
					v.Data = rapid.SliceOf(rapid.Byte()).Draw(t, "d")
					b.Blob(v.Data)
				}
				op.Args = append(op.Args, v)
			}
			want = append(want, op)
		}
		got, err := Decode(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) || b.Len() != len(want) {
			t.Fatalf("%d operations became %d", len(want), len(got))
		}
		for i := range want {
			if got[i].Statement != want[i].Statement || len(got[i].Args) != len(want[i].Args) {
				t.Fatalf("%+v became %+v", want[i], got[i])
			}
			for a, v := range want[i].Args {
				g := got[i].Args[a]
				if g.Type != v.Type || g.I != v.I || math.Float64bits(g.F) != math.Float64bits(v.F) ||
					!bytes.Equal(g.Data, v.Data) {
					t.Fatalf("%+v became %+v", v, g)
				}
			}
		}
	})
}

// TestGoldenBatch pins the bytes: SDKs of other languages are checked against them.
func TestGoldenBatch(t *testing.T) {
	var b Batch
	b.Reset()
	b.Op(1)
	b.I64(-2)
	b.F64(0.5)
	b.Text("é")
	b.Blob([]byte{0})
	b.Bool(true)
	b.Timestamp(1)
	b.Ref(2, 3)
	b.Null()
	b.Delay(1000)
	want := []byte{1, 0, 0, 0, 2, 0, 0, 0,
		1, 0, 8,
		1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		2, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f,
		3, 2, 0, 0, 0, 0xc3, 0xa9,
		4, 1, 0, 0, 0, 0,
		5, 1,
		6, 1, 0, 0, 0, 0, 0, 0, 0,
		7, 2, 3,
		0,
		3, 0xff, 1,
		1, 0xe8, 3, 0, 0, 0, 0, 0, 0}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the batch is\n%v, expected\n%v", b.Bytes(), want)
	}
}

func TestBatchAllocatesNothing(t *testing.T) {
	var b Batch
	fill := func() {
		b.Reset()
		for range 100 {
			b.Op(0)
			b.I64(1)
			b.Text("text")
			b.TextSpace(20)
		}
		b.Bytes()
	}
	fill()
	if n := testing.AllocsPerRun(100, fill); n != 0 {
		t.Errorf("%v allocations for a batch", n)
	}
}

func FuzzDecode(f *testing.F) {
	var b Batch
	b.Reset()
	b.Op(1)
	b.Text("x")
	b.Ref(1, 2)
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Decode(data); err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%v is not ErrMalformed", err)
		}
	})
}
