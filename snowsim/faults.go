package snowsim

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Kinds of faults.
const (
	// FaultThrottle answers with HTTP 429, FaultUnavailable with 503.
	FaultThrottle    = "429"
	FaultUnavailable = "503"
	// FaultForbidden answers with HTTP 403.
	FaultForbidden = "403"
	// FaultExpired lets the session token expire just before the request.
	FaultExpired = "expired"
	// FaultEnded ends the session just before the request: nothing renews it.
	FaultEnded = "ended"
	// FaultDrop closes the connection before the request is read,
	// FaultDropAnswer after it was carried out and before it is answered.
	FaultDrop       = "drop"
	FaultDropAnswer = "drop_answer"
	// FaultSlow delays the answer.
	FaultSlow = "slow"
)

var faultKinds = []string{
	FaultThrottle,
	FaultUnavailable,
	FaultForbidden,
	FaultExpired,
	FaultEnded,
	FaultDrop,
	FaultDropAnswer,
	FaultSlow,
}

// faultRequests are the kinds of requests that faults apply to.
var faultRequests = []string{"query", "login", "result", "chunk", "abort", "renew", "stage", "any"}

// Fault is one thing that goes wrong, at a rate or at certain requests.
type Fault struct {
	Kind string `json:"kind"`
	// On is the kind of request: "query" unless it is set, "login", "result",
	// "chunk", "abort", "renew", "stage" (those that store files), or "any".
	On string `json:"on,omitempty"`
	// Rate is the share of requests that it happens to, 0 … 1, by the seed.
	Rate float64 `json:"rate,omitempty"`
	// At is the one request that it happens to, from 1; Every lets it happen to each n-th.
	At    int64 `json:"at,omitempty"`
	Every int64 `json:"every,omitempty"`
	// Times bounds how often it happens; 0 is no bound.
	Times int64 `json:"times,omitempty"`
	// DelayMs is the delay of a slow answer; 0 is two seconds.
	DelayMs int64 `json:"delay_ms,omitempty"`
	// Seen and Happened count requests; they are read-only.
	Seen     int64 `json:"seen"`
	Happened int64 `json:"happened"`
}

func (f *Fault) validate() error {
	if f.On == "" {
		f.On = "query"
	}
	switch {
	case !slices.Contains(faultKinds, f.Kind):
		return fmt.Errorf("a fault %q is not known; there are %s", f.Kind, strings.Join(faultKinds, ", "))
	case !slices.Contains(faultRequests, f.On):
		return fmt.Errorf("faults do not happen on %q; they do on %s", f.On, strings.Join(faultRequests, ", "))
	case !(f.Rate >= 0 && f.Rate <= 1): // also when it is not a number
		return fmt.Errorf("the rate of a fault is between 0 and 1")
	case f.At < 0 || f.Every < 0 || f.Times < 0 || f.DelayMs < 0:
		return fmt.Errorf("a fault has a negative number")
	case f.Rate == 0 && f.At == 0 && f.Every == 0:
		return fmt.Errorf("the fault %q happens at no rate and at no request; say rate, at or every", f.Kind)
	}
	if f.DelayMs == 0 {
		f.DelayMs = 2000
	}
	f.Seen, f.Happened = 0, 0
	return nil
}

// ParseFault reads a fault as the command line writes it: the kind and then
// settings, "503,rate=0.01", "expired,every=100", "slow,at=7,delay=3s", "drop,rate=0.1,on=chunk,times=5".
func ParseFault(text string) (Fault, error) {
	parts := strings.Split(text, ",")
	f := Fault{Kind: strings.TrimSpace(parts[0])}
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		switch name {
		case "rate":
			f.Rate, err = strconv.ParseFloat(value, 64)
		case "at":
			f.At, err = strconv.ParseInt(value, 10, 64)
		case "every":
			f.Every, err = strconv.ParseInt(value, 10, 64)
		case "times":
			f.Times, err = strconv.ParseInt(value, 10, 64)
		case "delay":
			var d time.Duration
			d, err = time.ParseDuration(value)
			f.DelayMs = d.Milliseconds()
		case "on":
			f.On = value
		default:
			return f, fmt.Errorf("a fault has no setting %q; there are rate, at, every, times, delay and on", name)
		}
		if err != nil {
			return f, fmt.Errorf("the setting %s of a fault cannot be %q", name, value)
		}
	}
	return f, f.validate()
}

// faults decides what happens to requests. It is safe for concurrent use.
type faults struct {
	seed uint64

	mu       sync.Mutex
	list     []Fault
	happened int64
}

func (f *faults) set(list []Fault) error {
	list = slices.Clone(list)
	for i := range list {
		if err := list[i].validate(); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = list
	return nil
}

func (f *faults) count() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.happened
}

// next returns the fault that happens to a request, the first one of several.
func (f *faults) next(place string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	chosen := -1
	for i := range f.list {
		fault := &f.list[i]
		if fault.On != place && fault.On != "any" {
			continue
		}
		fault.Seen++
		if chosen >= 0 || fault.Times > 0 && fault.Happened >= fault.Times {
			continue
		}
		if fault.At == fault.Seen || fault.Every > 0 && fault.Seen%fault.Every == 0 || fault.Rate > 0 &&
			hashShare(f.seed, uint64(i), uint64(fault.Seen)) < fault.Rate {
			chosen = i
		}
	}
	if chosen < 0 {
		return Fault{}, false
	}
	f.list[chosen].Happened++
	f.happened++
	return f.list[chosen], true
}

// hashShare is a number in [0, 1) that depends on its arguments only.
func hashShare(parts ...uint64) float64 {
	z := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		z = (z ^ p) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>31) * 0x94d049bb133111eb
		z ^= z >> 29
	}
	return float64(z>>11) / (1 << 53)
}

// requestKind is the kind of a request by its path.
func requestKind(path string) string {
	switch {
	case path == "/queries/v1/query-request":
		return "query"
	case path == "/queries/v1/abort-request":
		return "abort"
	case path == "/session/v1/login-request":
		return "login"
	case path == "/session/token-request":
		return "renew"
	case strings.HasPrefix(path, "/chunks/"):
		return "chunk"
	case strings.HasPrefix(path, "/queries/"):
		return "result"
	}
	return ""
}

type delayKey struct{}

// answerDelay is the delay of the answer to a request.
func answerDelay(ctx context.Context) time.Duration {
	d, _ := ctx.Value(delayKey{}).(time.Duration)
	return d
}

// faultyPlace is a server to whose requests faults happen.
type faultyPlace struct {
	// kind is the kind of a request by its path, "" for none.
	kind func(path string) string
	// expire ends the credentials of a request, refuse answers it with a status.
	expire func(*http.Request)
	// end ends the session of a request.
	end    func(*http.Request)
	refuse func(w http.ResponseWriter, status int)
}

// inject lets faults happen to the requests of a handler.
func (f *faults) inject(at faultyPlace, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		where := at.kind(r.URL.Path)
		fault, happens := Fault{}, false
		if where != "" {
			fault, happens = f.next(where)
		}
		if !happens {
			next.ServeHTTP(w, r)
			return
		}
		switch fault.Kind {
		case FaultThrottle:
			w.Header().Set("Retry-After", "1")
			at.refuse(w, http.StatusTooManyRequests)
		case FaultUnavailable:
			at.refuse(w, http.StatusServiceUnavailable)
		case FaultForbidden:
			at.refuse(w, http.StatusForbidden)
		case FaultExpired:
			at.expire(r)
			next.ServeHTTP(w, r)
		case FaultEnded:
			at.end(r)
			next.ServeHTTP(w, r)
		case FaultDrop:
			dropConnection(w)
		case FaultDropAnswer:
			next.ServeHTTP(&discardWriter{header: http.Header{}}, r)
			dropConnection(w)
		case FaultSlow:
			delay := time.Duration(fault.DelayMs) * time.Millisecond
			if where == "query" || where == "result" {
				r = r.WithContext(context.WithValue(r.Context(), delayKey{}, delay))
			} else if wait(r.Context(), delay) != nil {
				return
			}
			next.ServeHTTP(w, r)
		}
	})
}

// dropConnection closes the connection of a request without an answer.
func dropConnection(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
		return
	}
	panic(http.ErrAbortHandler) // ends the connection too
}

// discardWriter drops an answer.
type discardWriter struct{ header http.Header }

func (d *discardWriter) Header() http.Header         { return d.header }
func (d *discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (d *discardWriter) WriteHeader(int)             {}

// routes adds the control of faults: GET lists them, POST replaces them, DELETE ends them.
func (f *faults) routes(mux *http.ServeMux) {
	tell := func(w http.ResponseWriter) {
		f.mu.Lock()
		list := append([]Fault{}, f.list...)
		f.mu.Unlock()
		protocol.Write(w, protocol.Success(list))
	}
	mux.HandleFunc("GET /snowsim/faults", func(w http.ResponseWriter, _ *http.Request) { tell(w) })
	mux.HandleFunc("POST /snowsim/faults", func(w http.ResponseWriter, r *http.Request) {
		var list []Fault
		err := protocol.Read(r, &list)
		if err == nil {
			err = f.set(list)
		}
		if err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			protocol.Write(w, protocol.Refusal("invalid", err.Error()))
			return
		}
		tell(w)
	})
	mux.HandleFunc("DELETE /snowsim/faults", func(w http.ResponseWriter, _ *http.Request) {
		_ = f.set(nil) // nothing is always right
		tell(w)
	})
}
