package clitest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// WebhookReceiver is an address with paths that behave badly: /hang never answers, /busy answers 500.
func WebhookReceiver(t *testing.T) (at string, posted chan string) {
	t.Helper()
	posted = make(chan string, 1000) // room: for more than a test posts
	ended := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/hang":
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		case "/busy":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			posted <- string(body)
		}
	}))
	t.Cleanup(func() { close(ended); s.Close() })
	return s.URL, posted
}
