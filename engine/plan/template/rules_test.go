package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
)

const ruleHead = `name: x
target: {connection: c, table_name: t}
workload: {plugin: mix}
rules:
`

// TestRulesAreBoundWhenATemplateIsRead: what is wrong with a statement is told with its place there, and in the
// document.
func TestRulesAreBoundWhenATemplateIsRead(t *testing.T) {
	for _, c := range []struct {
		name, rules, field, message string
		line, column                int
	}{
		{"a column, in a block", "  - name: a\n    when: |\n      SELECT MAX(p99Ms) AS p\n      FROM worker_statistics\n" +
			"      WHERE phas = 'x' WINDOW TUMBLING(timestamp, SIZE 1 SEC)\n", "rules[0].when",
			"BinderError: line 3, column 7: there is no column phas", 9, 13},
		{"on one line", "- {name: a, when: SELECT runId FRM heartbeats}\n", "rules[0].when",
			"ParserError: line 1, column 18: ", 5, 36},
		{"in quotes", "- name: a\n  when: \"SELECT nope FROM heartbeats\"\n", "rules[0].when",
			"BinderError: line 1, column 8: there is no column nope", 6, 17},
		{"a folded text has its line only", "- name: a\n  when: >\n    SELECT runId\n    FROM nowhere\n", "rules[0].when",
			"BinderError: line 1, column 19: there is no source nowhere", 6, 0},
		{"a column of executions", "  - name: a\n    when: |\n      SELECT QUANTILE(latencyMs, 0.99) AS p\n" +
			"      FROM executions WHERE knd = 'UPDATE'\n      WINDOW TUMBLING(timestamp, SIZE 1 SEC)\n", "rules[0].when",
			"BinderError: line 2, column 23: there is no column knd", 8, 29},
		{"a type, of statements", "- {name: a, when: SELECT runId FROM statement_statistics WHERE p99Ms > 'x'}\n",
			"rules[0].when", "BinderError: line 1, column 52: FLOAT64 and TEXT do not go together", 5, 70},
		{"an aggregate without a window", "- {name: a, when: SELECT MAX(latencyMs) AS m FROM executions}\n",
			"rules[0].when", "BinderError: line 1, column 1: a stream has no end", 5, 19},
		{"a sink", "- {name: a, when: SELECT runId FROM heartbeats INTO s}\n", "rules[0].when",
			"ParserError: line 1, column 35: this SELECT names no sink", 5, 53},
		{"two statements", "- {name: a, when: \"SELECT runId FROM heartbeats; DROP QUERY x\"}\n", "rules[0].when",
			"ParserError: line 1, column 31: expected SELECT, found DROP", 5, 50},
		{"nothing", "- {name: a, when: \";\"}\n", "rules[0].when",
			"ParserError: line 1, column 2: there is no statement", 5, 21},
		{"a name twice", "- {name: a, when: SELECT runId FROM heartbeats}\n- {name: A, when: SELECT runId FROM heartbeats}\n",
			"rules[1].name", "another rule has this name", 6, 0},
		{"no address", "- {name: a, when: SELECT runId FROM heartbeats, do: webhook}\n", "rules[0].url",
			"is required with do: webhook", 5, 0},
		{"an address for nothing", "- {name: a, when: SELECT runId FROM heartbeats, url: 'http://h/'}\n", "rules[0].url",
			"has no meaning with do: stop", 5, 0},
		{"no address at all", "- {name: a, when: SELECT runId FROM heartbeats, do: webhook, url: 'file:///etc/passwd'}\n",
			"rules[0].url", "is not http://HOST/PATH", 5, 0},
		{"an address of a cloud's keys", "- {name: a, when: SELECT runId FROM heartbeats, do: webhook, " +
			"url: 'http://169.254.169.254/latest/'}\n", "rules[0].url", "leads to an address of the link", 5, 0},
		{"a name of them", "- {name: a, when: SELECT runId FROM heartbeats, do: webhook, " +
			"url: 'https://metadata.google.internal./x'}\n", "rules[0].url", "leads to an address of the link", 5, 0},
		{"an address of the link", "- {name: a, when: SELECT runId FROM heartbeats, do: webhook, " +
			"url: 'http://[::ffff:169.254.1.1]:80/'}\n", "rules[0].url", "leads to an address of the link", 5, 0},
		{"another action", "- {name: a, when: SELECT runId FROM heartbeats, do: drop}\n", "rules[0].do", "", 5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := template.Parse([]byte(ruleHead + c.rules))
			fields := engine.AsError(err).Fields
			if len(fields) != 1 {
				t.Fatalf("%v", err)
			}
			f := fields[0]
			if f.Field != c.field || !strings.HasPrefix(f.Message, c.message) || f.Line != c.line || f.Column != c.column {
				t.Errorf("%+v", f)
			}
			if strings.HasSuffix(f.Field, ".when") && f.Excerpt == "" {
				t.Errorf("nothing shows the place: %+v", f)
			}
		})
	}
}

// TestRulesReadExecutions: of all and of each statement, also inside of another SELECT and in any case.
func TestRulesReadExecutions(t *testing.T) {
	for _, when := range []string{"SELECT runId FROM Executions WHERE latencyMs > 1000",
		"SELECT x FROM (SELECT runId AS x FROM statement_statistics)",
		"SELECT QUANTILE(latencyMs, 0.99) AS p FROM executions WHERE kind = 'UPDATE' " +
			"WINDOW TUMBLING(timestamp, SIZE 1 SEC) HAVING p > 200"} {
		if _, err := template.Parse([]byte(ruleHead + "- name: a\n  when: " + when + "\n")); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
}

// TestManyRules: as many as may be are read, and one more is refused.
func TestManyRules(t *testing.T) {
	var b strings.Builder
	b.WriteString(ruleHead)
	for n := range 20 {
		fmt.Fprintf(&b, "- {name: r%d, when: SELECT runId FROM heartbeats}\n", n)
	}
	s, err := template.Parse([]byte(b.String()))
	if err != nil || len(s.Rules) != 20 || s.Rules[3].Do != engine.RuleStop {
		t.Errorf("%v, %+v", err, s.Rules)
	}
	if _, err := template.Parse([]byte(b.String() + "- {name: more, when: SELECT runId FROM heartbeats}\n")); err == nil {
		t.Error("21 are read")
	}
}

// TestAnAddressIsHidden: in the scenario and in the text, also where the text spells it in a way of its own; then there
// is no text.
func TestAnAddressIsHidden(t *testing.T) {
	source := ruleHead + "- {name: a, when: SELECT runId FROM heartbeats, do: webhook, url: 'https://h.example/canary'}\n"
	s, err := template.Parse([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	text := template.MaskRulesIn(source, s.Rules)
	if strings.Contains(text, "canary") || !strings.Contains(text, "https://h.example/…") {
		t.Error(text)
	}
	spelled := strings.Replace(source, "'https://h.example/canary'", `"https://h.example/can\x61ry"`, 1)
	if text := template.MaskRulesIn(spelled, s.Rules); text != "" && strings.Contains(text, "ry") {
		t.Error(text)
	}
	stored := s.Clone()
	if err := template.SealRules(&stored, nil, func(plain string) string { return "sealed " + plain }); err != nil {
		t.Fatal(err)
	}
	again, err := template.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := template.UnmaskRules(&again, stored); err != nil ||
		again.Rules[0].URLSealed != "sealed https://h.example/canary" {
		t.Errorf("%v, %+v", err, again.Rules)
	}
	again.Rules[0].URLSealed, again.Rules[0].Name = "", "b"
	if err := template.UnmaskRules(&again, stored); err == nil {
		t.Error("a hidden address was taken from another rule")
	}
	again.Rules[0].URLSealed = "forged"
	if err := template.UnmaskRules(&again, stored); err == nil {
		t.Error("a sealed address can be given")
	}
}
