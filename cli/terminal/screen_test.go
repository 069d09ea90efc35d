package terminal

import (
	"bytes"
	"testing"
)

func TestLogLinesScrollAboveTheStatusLine(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{w: &out, Terminal: true}
	s.Status("measuring 1")
	if n, err := s.Write([]byte("a warning\n")); n != 10 || err != nil {
		t.Errorf("Write: %d, %v", n, err)
	}
	s.Status("measuring 2")
	s.Keep()
	s.Keep()
	_, _ = s.Write([]byte("the end\n"))
	want := clearLine + "measuring 1" + clearLine + "a warning\nmeasuring 1" + clearLine + "measuring 2" + "\n" +
		"the end\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
