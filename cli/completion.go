package cli

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
)

var keywords = append(
	strings.Fields(`SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT NULL IN BETWEEN LIKE CASE
WHEN THEN ELSE END JOIN LEFT ON WITH DISTINCT COUNT( SUM( AVG( MIN( MAX( STDDEV( QUANTILE( LAG( OVER PARTITION CREATE DROP
SHOW GET EXPLAIN LOGICAL PHYSICAL SOURCE SOURCES SINK SINKS QUERY QUERIES WORKER WORKERS FOR TYPE SET INTO WINDOW TUMBLING(
SLIDING( SIZE ADVANCE LATENESS SEC MINUTE HOUR GRACEFUL FORCEFUL TIMESTAMP TEXT INT64 UINT64 FLOAT64 BOOLEAN`),
	connector.Keywords()...)

// completer are what a server has to be written about.
type completer struct {
	mu              sync.Mutex
	tables, columns []string
	sources, sinks  []string
	queries         []string
}

// completionTimeout bounds how long names are asked for.
const completionTimeout = 5 * time.Second

// load asks a server for names; what it refuses is not completed.
func (n *completer) load(ctx context.Context, do APICall) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	type named struct {
		Name    string `json:"name"`
		Columns []struct {
			Name string `json:"name"`
		} `json:"columns"`
	}
	var results struct {
		Relations []struct {
			named
			Schema string `json:"schema"`
		} `json:"relations"`
	}
	var streams struct {
		Sources []named `json:"sources"`
		Sinks   []named `json:"sinks"`
		Queries []named `json:"queries"`
	}
	_ = do(ctx, http.MethodGet, "/api/v1/query-catalog", nil, &results)
	_ = do(ctx, http.MethodGet, "/api/v1/streams", nil, &streams)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tables, n.columns, n.sources, n.sinks, n.queries = nil, nil, nil, nil, nil
	columns := func(of named) {
		for _, c := range of.Columns {
			n.columns = append(n.columns, c.Name)
		}
	}
	for _, r := range results.Relations {
		name := r.Name
		if r.Schema != "tables" {
			name = r.Schema + "." + name
		}
		n.tables = append(n.tables, name)
		columns(r.named)
	}
	for _, s := range streams.Sources {
		n.sources = append(n.sources, s.Name)
		columns(s)
	}
	for _, s := range streams.Sinks {
		n.sinks = append(n.sinks, s.Name)
	}
	for _, q := range streams.Queries {
		n.queries = append(n.queries, q.Name)
	}
}

// complete completes the word before a place in a line: what is to be put there, and all that fits.
func (n *completer) complete(line string, at int) (word, common string, fit []string) {
	from := strings.LastIndexFunc(line[:at], func(r rune) bool { return !isWordRune(r) }) + 1
	word = line[from:at]
	before := strings.Fields(strings.ToUpper(line[:from]))
	last := ""
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	switch last {
	case "FROM", "JOIN":
		all = slices.Concat(n.sources, n.tables)
	case "FOR":
		all = n.sources
	case "INTO", "SINK", "SINKS":
		all = n.sinks
	case "QUERY", "QUERIES":
		all = n.queries
	default:
		all = slices.Concat(n.columns, keywords, n.sources, n.sinks, n.tables)
	}
	lower := word != "" && word == strings.ToLower(word)
	for _, name := range all {
		if len(name) < len(word) || !strings.EqualFold(name[:len(word)], word) {
			continue
		}
		if lower && slices.Contains(keywords, name) {
			name = strings.ToLower(name)
		}
		if !slices.Contains(fit, name) {
			fit = append(fit, name)
		}
	}
	slices.Sort(fit)
	for i, name := range fit {
		if i == 0 {
			common = name
			continue
		}
		same := 0
		for same < min(len(common), len(name)) && strings.EqualFold(common[same:same+1], name[same:same+1]) {
			same++
		}
		common = common[:same]
	}
	return word, common, fit
}

func isWordRune(r rune) bool {
	return r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127
}
