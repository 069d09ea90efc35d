package translate

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// bindsOf makes a bind of a kind and a value, none of nothing.
func bindsOf(kindAndValue ...string) []protocol.Bind {
	if kindAndValue == nil {
		return nil
	}
	return []protocol.Bind{bind(kindAndValue[0], kindAndValue[1])}
}

// TestTextIsComparedWithNumbers: the text is read as a number, whichever side it
// stands on, and one that is none fails the statement. Text against text stays text.
func TestTextIsComparedWithNumbers(t *testing.T) {
	c := newClient(t)
	c.must("CREATE TABLE t (id NUMBER, s VARCHAR, n NUMBER(10,2))")
	c.must("INSERT INTO t VALUES (1, '5', 5), (2, '05.0', 7.5), (3, '12', 12)")
	for _, q := range []struct {
		sql  string
		bind []string
		want string
	}{
		{"SELECT COUNT(*) FROM t WHERE s = ?", []string{"fixed", "5"}, "2"},
		{"SELECT COUNT(*) FROM t WHERE ? = s", []string{"fixed", "5"}, "2"},
		{"SELECT COUNT(*) FROM t WHERE s = ?", []string{"text", "5"}, "1"},
		{"SELECT COUNT(*) FROM t WHERE n = ?", []string{"text", "5.00"}, "1"},
		{"SELECT COUNT(*) FROM t WHERE s > ?", []string{"fixed", "5"}, "1"},
		{"SELECT COUNT(*) FROM t WHERE s >= ? AND s < 12", []string{"fixed", "5"}, "2"},
		{"SELECT COUNT(*) FROM t WHERE s <> 5", nil, "1"},
		{"SELECT COUNT(*) FROM t WHERE s = 12", nil, "1"},
		{"SELECT COUNT(*) FROM t WHERE s = '5'", nil, "1"},
		{"SELECT COUNT(*) FROM t WHERE n = s", nil, "2"},
		{"SELECT COUNT(*) FROM t WHERE s IN (5, 12)", nil, "3"},
		{"SELECT COUNT(*) FROM t WHERE s BETWEEN 5 AND 6", nil, "2"},
		{"SELECT COUNT(*) FROM t a JOIN t b ON a.s = b.n", nil, "3"},
	} {
		args := bindsOf(q.bind...)
		if got := printed(c.must(q.sql, args...)); !strings.HasSuffix(strings.TrimSpace(got), "\n"+q.want) {
			t.Errorf("%s %v: %s, want %s", q.sql, q.bind, got, q.want)
		}
	}
	c.must("INSERT INTO t VALUES (4, 'x', 0)")
	if _, err := c.exec("SELECT COUNT(*) FROM t WHERE s = ?", bindsOf("fixed", "5")...); !isCode(err, "100038") {
		t.Errorf("a text that is no number: %v", err)
	}
}
