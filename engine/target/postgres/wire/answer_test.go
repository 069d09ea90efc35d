package wire

import (
	"encoding/binary"
	"testing"
)

func message(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

func stream(messages ...[]byte) (out []byte) {
	for _, m := range messages {
		out = append(out, m...)
	}
	return out
}

var (
	bound = message('2', "")
	row   = message('D', "\x00\x01\x00\x00\x00\x01x")
	ready = message('Z', "I")
)

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		stream []byte
		rows   int64
		code   string
		done   bool
		broken bool
	}{
		{"two rows", stream(bound, row, row, message('C', "SELECT 2\x00"), ready), 2, "", true, false},
		{"no rows", stream(bound, message('C', "SELECT 0\x00"), ready), 0, "", true, false},
		{"insert", stream(bound, message('C', "INSERT 0 7\x00"), ready), 7, "", true, false},
		{"returning", stream(bound, row, message('C', "UPDATE 1\x00"), ready), 1, "", true, false},
		{"ddl", stream(bound, message('C', "CREATE TABLE\x00"), ready), 0, "", true, false},
		{"notices", stream(message('N', "SNOTICE\x00\x00"), bound, message('S', "TimeZone\x00UTC\x00"), row,
			message('A', "\x00\x00\x00\x01c\x00p\x00"), ready), 1, "", true, false},
		{"error", stream(message('E', "SERROR\x00VERROR\x00C23505\x00Mduplicate\x00\x00"), ready), 0, "23505", true, false},
		{"farewell after the answer", stream(bound, row, ready, message('E', "SFATAL\x00C57P01\x00Mbye\x00\x00")), 1, "",
			true, false},
		{"fatal wins", stream(message('E', "SERROR\x00C23505\x00Ma\x00\x00"), message('E', "SFATAL\x00C57P01\x00Mb\x00\x00")),
			0, "57P01", false, false},
		{"error without fields", stream(message('E', ""), ready), 0, "XX000", true, false},
		{"incomplete", stream(bound, row[:3]), 0, "", false, false},
		{"copy in", message('G', "\x00\x00\x00"), 0, "", false, false},
		{"copy in that was refused", stream(bound, message('G', "\x00\x00\x00"),
			message('E', "SERROR\x00VERROR\x00C57014\x00Mfailed\x00\x00"), ready), 0, "57014", true, false},
		{"copy out", stream(bound, message('H', "\x00\x00\x00"), message('d', "a\n"), message('d', "b\n"),
			message('c', ""), message('C', "COPY 2\x00"), ready), 2, "", true, false},
		{"copy both", message('W', "\x00\x00\x00"), 0, "", false, true},
		{"http", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), 0, "", false, true},
		{"zeros", make([]byte, 64), 0, "", false, true},
		{"length too small", []byte{'D', 0, 0, 0, 3}, 0, "", false, true},
		{"length too large", []byte{'D', 0xff, 0xff, 0xff, 0xff}, 0, "", false, true},
		{"ready without status", message('Z', ""), 0, "", false, true},
		{"an answer too many", stream(bound, ready, bound), 0, "", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, step := range []int{len(c.stream), 1, 2, 3, 7} {
				var a Answer
				for p := c.stream; len(p) > 0 && a.Broken == nil; {
					n := min(step, len(p))
					a.Feed(p[:n])
					p = p[n:]
				}
				code := ""
				if a.Err != nil {
					code = a.Err.Code
				}
				if a.Rows != c.rows || code != c.code || a.Done != c.done || (a.Broken != nil) != c.broken {
					t.Errorf("in steps of %d: rows %d, code %q, done %v, broken %v", step, a.Rows, code, a.Done, a.Broken)
				}
			}
		})
	}
}

// FuzzAnswer feeds the same bytes whole and cut in two: neither may panic, and both must agree.
func FuzzAnswer(f *testing.F) {
	f.Add(stream(bound, row, row, message('C', "SELECT 2\x00"), ready), uint16(7))
	f.Add(stream(message('E', "SERROR\x00C23505\x00Md\x00\x00"), ready, message('N', "x\x00\x00")), uint16(12))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), uint16(3))
	f.Fuzz(func(t *testing.T, p []byte, cut uint16) {
		var whole, parts Answer
		whole.Feed(p)
		at := min(int(cut), len(p))
		parts.Feed(p[:at])
		if parts.Broken == nil {
			parts.Feed(p[at:])
		}
		if whole.Rows != parts.Rows || whole.Done != parts.Done || (whole.Err == nil) != (parts.Err == nil) {
			// A long message is refused before it has all come, so only the verdict must agree.
			t.Fatalf("whole %+v, in parts %+v", whole, parts)
		}
		if (whole.Broken == nil) != (parts.Broken == nil) {
			t.Fatalf("whole %v, in parts %v", whole.Broken, parts.Broken)
		}
		for _, a := range []*Answer{&whole, &parts} {
			if a.Err != nil {
				_ = Fatal(a.Err)
			}
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	p := stream(bound, row, message('C', "SELECT 1\x00"), ready)
	var a Answer
	b.ReportAllocs()
	for b.Loop() {
		a.Reset()
		a.Feed(p)
	}
}

// TestLongRowIsNotKept: a first row that is too long is read past, in pieces or whole.
func TestLongRowIsNotKept(t *testing.T) {
	large := message('D', string(make([]byte, 40*maxCachedBytes)))
	all := stream(bound, large, row, message('C', "SELECT 2\x00"), ready)
	for _, step := range []int{len(all), 64 << 10} {
		a := Answer{KeepRow: true}
		for p := all; len(p) > 0; p = p[min(step, len(p)):] {
			a.Feed(p[:min(step, len(p))])
		}
		if a.Rows != 2 || !a.Done || a.Broken != nil || !a.Long || a.Row != nil {
			t.Errorf("in pieces of %d: %d rows, done %v, %v, long %v, %d bytes", step, a.Rows, a.Done, a.Broken, a.Long,
				len(a.Row))
		}
		if cap(a.keep)+cap(a.rowMem) > maxCachedBytes {
			t.Errorf("in pieces of %d: %d bytes are held", step, cap(a.keep)+cap(a.rowMem))
		}
	}
}
