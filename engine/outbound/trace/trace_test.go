package trace

import (
	"bytes"
	"testing"

	"github.com/rs/zerolog"
)

// TestALineAboutARunNamesItsTrace, where traces are made; no other line changes, whatever its texts are like.
func TestALineAboutARunNamesItsTrace(t *testing.T) {
	var out bytes.Buffer
	lines := NewLogWriter(&out)
	log := zerolog.New(lines)
	write := func() string {
		defer out.Reset()
		log.Info().Str("run_id", "r").Int("n", 1).Msg("{}")
		log.Info().Str("text", `,"run_id":"x"}`).Msg(`"run_id":"y"`)
		log.Info().Str("first_run_id", "z").Str("run_id", "").Msg("")
		return out.String()
	}
	before := write()
	if bytes.Contains([]byte(before), []byte("trace_id")) {
		t.Errorf("without traces: %s", before)
	}
	lines.Enable()
	want := `{"level":"info","run_id":"r","n":1,"message":"{}","trace_id":"` + ID("r") + `"}` + "\n" +
		before[bytes.IndexByte([]byte(before), '\n')+1:]
	if got := write(); got != want {
		t.Errorf("with traces:\n%s\nwant\n%s", got, want)
	}
	if n, err := lines.Write([]byte(`{"run_id":"r"}`)); n != 14 || err != nil {
		t.Errorf("a line of 14 bytes: %d, %v", n, err)
	}
}

// TestAContextOfAnotherProcessIsReadOrLeft: what others send may be anything.
func TestAContextOfAnotherProcessIsReadOrLeft(t *testing.T) {
	tracer := &Tracer{}
	const sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := tracer.ContextBelow(sent, "r", "k")
	if c, ok := parse(got); !ok || c.TraceID().String() != sent[3:35] || c.SpanID() != spanID("r", "k") ||
		!c.IsSampled() {
		t.Errorf("%q became %q", sent, got)
	}
	for _, text := range []string{"", "x", "00-1-2-3", sent[:54],
		"00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-zz"} {
		if got := tracer.ContextBelow(text, "r", "k"); got != "" {
			t.Errorf("%q became %q", text, got)
		}
	}
}
