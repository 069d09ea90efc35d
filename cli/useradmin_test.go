package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

func TestATokenThatEndsSoonIsMarked(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for left, want := range map[time.Duration]string{
		90 * day:                "2027-02-22T12:00:00Z",
		14 * day:                "2026-12-08T12:00:00Z",
		14*day - time.Second:    "2026-12-08T11:59:59Z (in 13 days)",
		2*day - time.Second:     "2026-11-26T11:59:59Z (in 1 day)",
		day - time.Second:       "2026-11-25T11:59:59Z (within a day)",
		-400 * time.Millisecond: "2026-11-24T11:59:59Z (within a day)",
	} {
		if got := formatExpiry(engine.At(now.Add(left)), now); got != want {
			t.Errorf("%v before: %q, want %q", left, got, want)
		}
	}
	if got := formatExpiry(engine.Time{}, now); got != "never" {
		t.Errorf("without an end: %q", got)
	}
}

// TestAListThatIsCutSaysSo, and names that others chose reach the terminal as text on one line.
func TestAListThatIsCutSaysSo(t *testing.T) {
	answer := `{"tokens": [{"token_id": "1", "name": "\u001b[2Jci\n\u202egnp", "scope": "run", "user_name": "ada\tx"}],
		"total": 1001}`
	var out, errs bytes.Buffer
	err := UserTokens{}.Run(&terminal.Env{Ctx: t.Context(), Stdout: &out, Stderr: &errs},
		func(_ context.Context, _, _ string, _, to any) error { return json.Unmarshal([]byte(answer), to) })
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || strings.Join(strings.Fields(lines[1]), " ") != "1 ada x [2Jci gnp run never never" ||
		errs.String() != "1000 older ones are not shown.\n" {
		t.Errorf("%q, %q", out.String(), errs.String())
	}
}
