package snowflake

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// account is what a few tests need of Snowflake's protocol, with every answer in
// the test's hand. What Snowflake does with SQL is snowsim's business.
type account struct {
	*httptest.Server
	// login returns the answer to a log-in; nil lets everybody in.
	login func(data map[string]any) map[string]any
	// parameters are those that a session has whatever its log-in asked for; ALTER SESSION changes nothing.
	parameters map[string]string
	// deaf lets aborts fail.
	deaf atomic.Bool

	mu       sync.Mutex
	query    answerer
	logins   []map[string]any
	requests []request
	paths    []string
	aborted  map[string]chan struct{}
	date     time.Time // of its answers, when it is not now

	open, sessions, renewals, aborts atomic.Int64
}

// answerer returns the answer to a statement, or writes one itself and returns nil.
type answerer func(w http.ResponseWriter, r *http.Request, q request) map[string]any

// respond sets what answers statements from now on; nil answers each with a row.
func (a *account) respond(with answerer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.query = with
}

type request struct {
	SQLText      string         `json:"sqlText"`
	DescribeOnly bool           `json:"describeOnly"`
	Parameters   map[string]any `json:"parameters"`
	Bindings     map[string]struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	} `json:"bindings"`
	id, token string
	abort     chan struct{}
}

func newAccount(t testing.TB) *account {
	a := &account{aborted: map[string]chan struct{}{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

// dsn is a DSN of the account; parameters are added.
func (a *account) dsn(parameters ...string) string {
	u, _ := url.Parse(a.URL)
	return "snowflake://tester:se%3Acret@" + u.Host + "/DB/PUBLIC?account=fake&protocol=http&warehouse=WH&role=R" +
		strings.Join(append([]string{""}, parameters...), "&")
}

func refusal(code int, state, message string) map[string]any {
	return map[string]any{"success": false, "code": fmt.Sprintf("%06d", code), "message": message,
		"data": map[string]any{"sqlState": state, "queryId": queryID(7)}}
}

func queryID(n int64) string { return fmt.Sprintf("01c24de4-0000-4000-8000-%012x", n) }

// rows is a result in Snowflake's JSON format; columns are name:type.
func rows(columns []string, values ...[]any) map[string]any {
	types := []map[string]any{}
	for _, c := range columns {
		name, kind, _ := strings.Cut(c, ":")
		kind, scale, _ := strings.Cut(kind, ".")
		types = append(types, map[string]any{"name": name, "type": kind, "nullable": true, "precision": 38,
			"scale": len(scale)})
	}
	if values == nil {
		values = [][]any{}
	}
	return map[string]any{"success": true,
		"data": map[string]any{"rowtype": types, "rowset": values, "total": len(values), "returned": len(values),
			"queryId": queryID(1), "queryResultFormat": "json", "statementTypeId": 0x1000, "parameters": []any{}}}
}

// affected is the answer to a DML statement.
func affected(n int) map[string]any {
	r := rows([]string{"number of rows:fixed"}, []any{fmt.Sprint(n)})
	r["data"].(map[string]any)["statementTypeId"] = 0x3100
	return r
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.paths = append(a.paths, r.URL.Path)
	date := a.date
	a.mu.Unlock()
	if !date.IsZero() {
		w.Header().Set("Date", date.UTC().Format(http.TimeFormat))
	}
	body, _ := io.ReadAll(r.Body)
	answer := map[string]any{"success": true, "data": map[string]any{}}
	switch r.URL.Path {
	case loginPath:
		var in struct{ Data map[string]any }
		_ = json.Unmarshal(body, &in)
		a.mu.Lock()
		a.logins = append(a.logins, in.Data)
		a.mu.Unlock()
		n := a.sessions.Add(1)
		answer["data"] = map[string]any{"token": fmt.Sprintf("t%d", n), "masterToken": fmt.Sprintf("m%d", n), "sessionId": n,
			"validityInSeconds":       3600,
			"masterValidityInSeconds": 14400,
			"parameters":              []any{map[string]any{"name": "CLIENT_TELEMETRY_ENABLED", "value": false}}}
		if a.login != nil {
			if other := a.login(in.Data); other != nil {
				answer = other
			}
		}
		if answer["success"] == true {
			a.open.Add(1)
		}
	case "/session/token-request":
		n := a.renewals.Add(1)
		answer["data"] = map[string]any{"sessionToken": fmt.Sprintf("renewed%d", n), "masterToken": "m", "sessionId": 1}
	case sessionPath:
		a.open.Add(-1)
	case abortPath:
		if a.deaf.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var in struct{ RequestID string }
		_ = json.Unmarshal(body, &in)
		a.aborts.Add(1)
		a.mu.Lock()
		if c := a.aborted[in.RequestID]; c != nil {
			close(c)
			delete(a.aborted, in.RequestID)
		}
		a.mu.Unlock()
	case "/queries/v1/query-request":
		q := request{id: r.URL.Query().Get("requestId"), abort: make(chan struct{}),
			token: strings.Trim(strings.TrimPrefix(r.Header.Get("Authorization"), "Snowflake Token="), `"`)}
		_ = json.Unmarshal(body, &q)
		if q.SQLText == "SHOW PARAMETERS IN SESSION" {
			answer = a.showParameters()
			break
		}
		a.mu.Lock()
		a.requests = append(a.requests, q)
		a.aborted[q.id] = q.abort
		query := a.query
		a.mu.Unlock()
		switch {
		case q.DescribeOnly:
			answer = rows([]string{"A:text"})
		case query != nil:
			if answer = query(w, r, q); answer == nil {
				return
			}
		default:
			answer = rows([]string{"A:text"}, []any{"1"})
		}
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// showParameters tells what the last log-in asked for, and what it did not get.
func (a *account) showParameters() map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked, _ := a.logins[len(a.logins)-1]["SESSION_PARAMETERS"].(map[string]any)
	var list [][]any
	for name, value := range asked {
		if other, ok := a.parameters[name]; ok {
			value = other
		}
		list = append(list, []any{name, fmt.Sprint(value), "SESSION"}) // the log-in has set them all
	}
	return rows([]string{"key:text", "value:text", "level:text"}, list...)
}

// hang answers a statement when it is aborted, or when its client goes.
func hang(_ http.ResponseWriter, r *http.Request, q request) map[string]any {
	select {
	case <-q.abort:
	case <-r.Context().Done():
	case <-time.After(30 * time.Second):
	}
	return refusal(numberCancelled, "57014", "SQL execution canceled")
}
