package refresh_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

func TestNobodyIsNamedWithTheCure(t *testing.T) {
	active, suspended := refresh.Active, refresh.Suspended
	table := func(k refresh.Kind, s refresh.Status) refresh.Table { return refresh.Table{Kind: k, Status: s} }
	both := []refresh.Table{table(refresh.SQL, active), table(refresh.Ingest, active)}
	for name, c := range map[string]struct {
		tables []refresh.Table
		does   [][]refresh.Kind
		says   []string
	}{
		"no worker at all": {both, nil,
			[]string{"takes finished runs in or refreshes tables", "--refresh-workers", "node"}},
		"one for both":       {both, [][]refresh.Kind{{refresh.SQL, refresh.Ingest}}, nil},
		"one for each":       {both, [][]refresh.Kind{{refresh.SQL}, {refresh.Ingest}}, nil},
		"only SQL":           {both, [][]refresh.Kind{{refresh.SQL}}, []string{"Nobody takes finished runs in."}},
		"only INGEST":        {both, [][]refresh.Kind{{refresh.Ingest}}, []string{"Nobody refreshes tables.", "node"}},
		"what is suspended":  {[]refresh.Table{table(refresh.SQL, suspended)}, nil, nil},
		"without any tables": {nil, nil, nil},
	} {
		s := refresh.State{Tables: c.tables}
		for _, kinds := range c.does {
			s.Workers = append(s.Workers, refresh.Worker{Kinds: kinds})
		}
		got := refresh.MissingWorkers(s)
		if (got == "") != (c.says == nil) {
			t.Errorf("%s: %q", name, got)
		}
		for _, text := range c.says {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %q lacks %q", name, got, text)
			}
		}
	}
}
