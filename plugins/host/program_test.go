package host

import (
	"encoding/binary"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestProgramIsTheBuildID: it is what Go's own tool reads in the running program.
func TestProgramIsTheBuildID(t *testing.T) {
	if runtime.GOOS != "linux" {
		if Program() != "" {
			t.Errorf("%q: who says that this file is what runs?", Program())
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "buildid", self).Output()
	if id := strings.TrimSpace(string(out)); err != nil || id == "" || Program() != id {
		t.Errorf("%q, and the tool says %q, %v", Program(), id, err)
	}
}

// TestNotes: Go's note is found behind others, and what is cut off or of somebody else is no build ID.
func TestNotes(t *testing.T) {
	note := func(name string, kind uint32, text string) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(name)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
		b = binary.LittleEndian.AppendUint32(b, kind)
		for _, part := range []string{name, text} {
			b = append(b, part...)
			for len(b)%4 != 0 {
				b = append(b, 0)
			}
		}
		return b
	}
	gnu, ours := note("GNU\x00", 3, "12345"), note("Go\x00\x00", 4, "the/build/id")
	for _, c := range []struct {
		name  string
		notes []byte
		want  string
	}{
		{"alone", ours, "the/build/id"},
		{"behind another", append(gnu, ours...), "the/build/id"},
		{"another's", gnu, ""},
		{"another kind of Go's", note("Go\x00\x00", 5, "x"), ""},
		{"cut off", ours[:len(ours)-4], ""},
		{"a length beyond all", append([]byte{4, 0, 0, 0, 255, 255, 255, 255, 4, 0, 0, 0}, "Go\x00\x00"...), ""},
		{"none", nil, ""},
	} {
		if got := buildID(c.notes, binary.LittleEndian); got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
}
