package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestAUserHasSoManyWatches: twenty are refused another one, others are not, and one that ends leaves its place.
func TestAUserHasSoManyWatches(t *testing.T) {
	t.Parallel()
	b := start(t)
	var open []lasting
	for range 20 {
		open = append(open, b.streamed("Authorization", "Bearer "+b.token))
	}
	ask := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.base+"/api/v1/streams/watch?sql="+
			url.QueryEscape("WATCH SELECT * FROM queries"), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+b.token)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if got := ask(); got != http.StatusConflict {
		t.Errorf("another watch is answered %d", got)
	}
	open[0].end()
	for until := time.Now().Add(10 * time.Second); ask() != http.StatusOK; {
		if time.Now().After(until) {
			t.Fatal("the place of a watch that has ended is taken")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestAGroupHasSoManyStatements: 20 000 of them, and more than a megabyte, are an error of the field, at once.
func TestAGroupHasSoManyStatements(t *testing.T) {
	t.Parallel()
	b := start(t)
	for sql, says := range map[string]string{
		strings.Repeat("SHOW SINKS;", 20_000): "at most 1000 statements",
		strings.Repeat(" ", 1_000_001):        "1000000",
	} {
		began := time.Now()
		a := b.do(http.MethodPost, "/api/v1/streams/statements", map[string]string{"sql": sql})
		if took := time.Since(
			began,
		); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), says) ||
			!strings.Contains(string(a.body), "sql") ||
			took > 5*time.Second {
			t.Errorf("%d %.300s after %v", a.StatusCode, a.body, took)
		}
	}
}
