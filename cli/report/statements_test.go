package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// printed are the words of each line of a summary that begins with one of these words.
func printed(t *testing.T, s *engine.Summary, first ...string) (lines []string) {
	t.Helper()
	var b strings.Builder
	if err := Summary(&b, s); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(b.String(), "\u00a0", "")) {
		if words := strings.Fields(line); len(words) > 0 && slices.Contains(first, words[0]) {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return lines
}

// TestStatementsOfAKindThatHasSeveral are told apart, the most frequent first; one alone is its kind, and those inside
// transactions are not operations.
func TestStatementsOfAKindThatHasSeveral(t *testing.T) {
	s := summary()
	ms := &engine.StatementLatencyMs{P50: 1, P95: 2, P99: 3}
	s.ByStatement = []engine.StatementFigures{
		{StatementID: "payment", Kind: engine.KindTransaction, Count: 430, QPS: new(43.0), LatencyMs: ms},
		{StatementID: "new_order", Kind: engine.KindTransaction, Count: 450, Errors: 2, QPS: new(45.0), LatencyMs: ms},
		{
			StatementID:   "stock",
			Kind:          engine.KindTransaction,
			InTransaction: true,
			Count:         4500,
			QPS:           new(450.0),
			LatencyMs:     ms,
		},
		{StatementID: "insert", Kind: engine.KindInsert, Count: 5, QPS: new(0.5), LatencyMs: ms},
	}
	want := []string{"statement operations op/s P50 P95 P99 errors", "new_order 450 45.0 1.00 ms 2.00 ms 3.00 ms 2",
		"payment 430 43.0 1.00 ms 2.00 ms 3.00 ms 0"}
	if got := printed(t, s, "statement", "new_order", "payment", "stock", "insert", "and"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// What was carried over alone has a rate and nothing else.
	s.ByKind[engine.KindDelete] = &engine.KindFigures{CarriedOver: 5, QPS: new(0.5)}
	s.ByStatement = append(s.ByStatement, engine.StatementFigures{StatementID: "cancel", Kind: engine.KindTransaction,
		CarriedOver: 9, QPS: new(0.9)})
	want = []string{"DELETE 0 0.5 - - - 0", "cancel 0 0.9 - - - 0"}
	if got := printed(t, s, "DELETE", "cancel"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s.ByStatement = s.ByStatement[1 : len(s.ByStatement)-1]
	if got := printed(t, s, "statement", "new_order"); len(got) > 0 {
		t.Errorf("one statement of each kind: %q", got)
	}
	s.ByStatement = nil
	for i := range maxStatements + 3 {
		s.ByStatement = append(s.ByStatement, engine.StatementFigures{StatementID: fmt.Sprint("s", i),
			Kind: engine.KindGenericSQL, Count: int64(i + 1), LatencyMs: ms})
	}
	if got := printed(t, s, "s14", "s2", "and"); len(got) != 2 || !strings.HasPrefix(got[0], "s14 ") ||
		got[1] != "and 3 more; loadstone report has all" {
		t.Errorf("many statements: %q", got)
	}
}

// TestJUnitSaysHowManyOperationsFailed where some did and no case fails for it.
func TestJUnitSaysHowManyOperationsFailed(t *testing.T) {
	s := summary()
	s.Operations, s.Errors.Count = 12345, 2351
	var b bytes.Buffer
	if err := JUnit(&b, s, false); err != nil {
		t.Fatal(err)
	}
	var suite junitSuite
	if err := xml.Unmarshal(b.Bytes(), &suite); err != nil {
		t.Fatal(err)
	}
	message := 0
	for _, c := range suite.Cases {
		if strings.Contains(c.Output, "2351 of 12345 operations failed (19 %)") && c.Failure == nil {
			message++
		}
	}
	if message != 1 {
		t.Errorf("it is said %d times:\n%s", message, b.String())
	}
}
