package snowflake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// statusError is an answer of the account that is no answer to the request:
// 429 and 503 say that it has too much to do.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the account answered HTTP %d (%s)", e.code, strings.ToLower(http.StatusText(e.code)))
}

// forbiddenError is a request that this driver does not let out.
type forbiddenError struct{ what string }

func (e *forbiddenError) Error() string { return "refused by the driver: " + e.what }

// storageDomains are where Snowflake keeps the parts of large results. Their
// addresses come with a result, signed, for one GET each.
var storageDomains = []string{
	".amazonaws.com", ".amazonaws.com.cn", ".blob.core.windows.net", ".blob.core.usgovcloudapi.net",
	".blob.core.chinacloudapi.cn",
	"storage.googleapis.com", ".storage.googleapis.com", ".rep.googleapis.com",
}

// accountPaths are what gosnowflake asks of an account in the sign-ins that this driver has.
var accountPaths = []string{"/session", queriesPath, "/monitoring/queries/"}

// answeredKey is the key of a *time.Time in a request's context, which is set
// when the head of the answer has arrived.
type answeredKey struct{}

const (
	queriesPath   = "/queries/"
	telemetryPath = "/telemetry/send"
	loginPath     = "/session/v1/login-request"
	sessionPath   = "/session"
	abortPath     = "/queries/v1/abort-request"
	// chunkPath is where a stand-in on this machine keeps the parts of its results.
	chunkPath = "/chunks/"
)

// closeTimeout bounds what is said to an account on the way out: aborts and closed sessions.
const closeTimeout = 5 * time.Second

// transport carries all requests of one database. It lets gosnowflake reach
// the account, the storage that results name, and for an upload the stage that the account names in its own answer
// (upload.go), and nothing else. It has no
// CloseIdleConnections: each session that closes would close those of all others.
type transport struct {
	account string // host:port
	scheme  string
	base    *http.Transport
	// report, if any, is told the host of every request before it is judged.
	report func(host string)
	// identity is whose identities gosnowflake asks the machine for, empty for none.
	identity string
	// patience is how long a stage may be away; tests make it short.
	patience time.Duration
	// standIn reaches the stages of a stand-in on this machine.
	standIn struct {
		sync.Mutex
		authority string
		rounds    *http.Transport
	}
	// ahead is by how much this machine's clock was ahead of the account's at the
	// last log-in, in nanoseconds.
	ahead atomic.Int64
}

// dialTimeout bounds TCP and TLS each.
const dialTimeout = 10 * time.Second

func newTransport(s *accountSettings, p *egress.Policy) *transport {
	t := &transport{account: net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), scheme: "https",
		identity: s.IdentityProvider, patience: stagePatience}
	if s.Plain {
		t.scheme = "http"
	}
	dial := (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	if p != nil {
		dial = p.Dial
	}
	t.base = &http.Transport{
		DialContext:         dial,
		TLSHandshakeTimeout: dialTimeout,
		// Each session has one request under way, and keeps its TCP connection for the next.
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: 1 << 16,
		IdleConnTimeout:     10 * time.Minute,
		ReadBufferSize:      16 << 10,
		// A proxy is the business of whoever runs Loadstone. One for this machine makes no sense.
		Proxy: func(r *http.Request) (*url.URL, error) {
			if isLoopback(r.URL.Hostname()) {
				return nil, nil
			}
			return http.ProxyFromEnvironment(r)
		},
	}
	return t
}

// allowed says why a request is not let out.
func (t *transport) allowed(r *http.Request) error {
	if r.URL.Host == t.account {
		if r.URL.Scheme != t.scheme {
			return &forbiddenError{"the account over " + r.URL.Scheme}
		}
		for _, path := range accountPaths {
			if strings.HasPrefix(r.URL.Path, path) {
				return nil
			}
		}
		if t.scheme != "http" || !strings.HasPrefix(r.URL.Path, chunkPath) {
			return &forbiddenError{r.URL.Path}
		}
	}
	host := strings.ToLower(r.URL.Hostname())
	if t.scheme == "http" && r.Method == http.MethodGet && r.URL.Scheme == "http" && isLoopback(host) &&
		r.Header.Get("Authorization") == "" && strings.HasPrefix(r.URL.Path, chunkPath) {
		return nil
	}
	if r.Method == http.MethodGet && r.URL.Scheme == "https" && r.Header.Get("Authorization") == "" {
		for _, domain := range storageDomains {
			if strings.HasSuffix(host, domain) {
				return nil
			}
		}
	}
	return &forbiddenError{r.Method + " to " + r.URL.Host}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.report != nil {
		t.report(r.URL.Host)
	}
	if r.URL.Host == t.account && r.URL.Path == telemetryPath {
		// The session says no to telemetry; should it be sent all the same, it ends here.
		return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{},
			Body:   io.NopCloser(strings.NewReader(`{"success":true}`)), Request: r}, nil
	}
	if asksMachine(t.identity, r, os.Getenv) {
		return metadataTransport.RoundTrip(r)
	}
	u := uploadOf(r.Context())
	if u != nil && r.URL.Host != t.account {
		return u.roundTrip(r)
	}
	if err := t.allowed(r); err != nil {
		return nil, err
	}
	if u != nil && strings.HasPrefix(r.URL.Path, queriesPath) && r.URL.Path != abortPath {
		if u.failure() != nil {
			return u.farewell(r), nil
		}
		resp, err := t.send(r)
		if err != nil {
			return nil, err
		}
		return u.learn(resp)
	}
	if path := r.URL.Path; r.URL.Host == t.account && (path == abortPath || path == sessionPath) {
		ctx, cancel := context.WithTimeout(r.Context(), closeTimeout)
		resp, err := t.send(r.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, err
		}
		resp.Body = &closing{resp.Body, cancel}
		return resp, nil
	}
	return t.send(r)
}

func (t *transport) send(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if r.URL.Host != t.account {
		return resp, nil
	}
	if answered, ok := r.Context().Value(answeredKey{}).(*time.Time); ok && strings.HasPrefix(r.URL.Path, queriesPath) {
		*answered = time.Now()
	}
	if r.URL.Path == loginPath {
		if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			t.ahead.Store(int64(time.Since(at)))
		}
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout,
		http.StatusRequestTimeout, http.StatusInternalServerError:
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the TCP connection can be used again
		_ = resp.Body.Close()
		return nil, &statusError{resp.StatusCode}
	}
	return resp, nil
}

// closeIdle closes the TCP connections that nothing uses.
func (t *transport) closeIdle() {
	t.base.CloseIdleConnections()
	t.standIn.Lock()
	defer t.standIn.Unlock()
	if t.standIn.rounds != nil {
		t.standIn.rounds.CloseIdleConnections()
	}
}

// closing ends a request's context with its body.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *closing) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// lost reports whether a request may have reached the account and its answer did not reach us.
func lost(err error) bool {
	if errors.Is(err, egress.ErrRefused) {
		return false
	}
	var status *statusError
	var forbidden *forbiddenError
	if errors.As(err, &status) || errors.As(err, &forbidden) {
		return false
	}
	var transported *url.Error
	return errors.As(err, &transported) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, net.ErrClosed)
}
