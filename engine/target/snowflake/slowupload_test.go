package snowflake

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestASlowUploadGoesOnAfterAFault: a stage that was busy once takes a file that needs longer than its patience. One that
// takes nothing, or goes on saying that it is busy, ends the upload with what it said.
func TestASlowUploadGoesOnAfterAFault(t *testing.T) {
	t.Parallel()
	slowly := func(r *http.Request) (*http.Response, error) {
		for p := make([]byte, 1); ; time.Sleep(stagePatience / 4) {
			if _, err := r.Body.Read(p); err == io.EOF {
				return respond(r, http.StatusOK, "", ""), nil
			}
		}
	}
	hangs := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	busy := func(r *http.Request) (*http.Response, error) {
		return respond(r, http.StatusServiceUnavailable, "", ""), nil
	}
	for name, c := range map[string]struct {
		then   func(*http.Request) (*http.Response, error)
		within time.Duration // zero: it does not fail
	}{"slow": {slowly, 0}, "hanging": {hangs, 2 * stagePatience}, "busy": {busy, stagePatience + time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				settings, err := parseDSN("u:p@acme/DB")
				if err != nil {
					t.Fatal(err)
				}
				u := newUpload(t.Context(), newTransport(settings, nil), "/f")
				defer u.close()
				u.places = []place{{host: "stage.example", prefix: "/"}}
				put := func() {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://stage.example/f",
						strings.NewReader("twelve bytes"))
					if err != nil {
						t.Fatal(err)
					}
					if resp, err := u.roundTrip(r); err == nil {
						_ = resp.Body.Close()
					}
				}
				u.rounds = roundTripper(busy)
				put()
				begun := time.Now()
				u.rounds = roundTripper(c.then)
				for u.failure() == nil && time.Since(begun) < stagePatience*2 {
					time.Sleep(time.Second)
					put()
				}
				failed := u.failure()
				if took := time.Since(begun); c.within > 0 && (took > c.within || failed == nil ||
					!strings.Contains(failed.Error(), "HTTP 503")) || c.within == 0 && failed != nil {
					t.Errorf("after %v: %v", took, failed)
				}
			})
		})
	}
}
