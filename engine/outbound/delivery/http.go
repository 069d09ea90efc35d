package delivery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// Endpoint is where things are delivered, and who delivers them.
type Endpoint struct {
	// Flag names the option that says URL, for who reads a refusal.
	Flag string
	URL  secret.Secret
	// Token is a bearer token; User and Password are the other way to sign in. Headers are sent besides.
	Token    secret.Secret
	User     string
	Password secret.Secret
	Headers  map[string]secret.Secret
	// CA is a file with the authorities that the endpoint's certificate may be of, "" for the system's.
	CA []byte
	// Egress judges the addresses that are dialled; nil refuses only those that always are.
	Egress *egress.Policy
	// HideInternal keeps back what an address of this machine or of a private network says: whoever names the endpoint,
	// and reads why it failed, would read a service through this server that only the server reaches.
	HideInternal bool
	// UserAgent is what this program calls itself.
	UserAgent string
}

// attemptTimeout bounds an attempt, with its answer.
const attemptTimeout = 20 * time.Second

// maxResponseBytes is how many bytes of an answer are looked at.
const maxResponseBytes = 4 << 10

// Client speaks with an endpoint. It follows no redirect and speaks with no address that only the machine's cloud has.
type Client struct {
	at       *url.URL
	to       string
	headers  http.Header
	redactor *strings.Replacer
	http     *http.Client
	// hidden is whether an internal address was dialled, whose answers are not to be shown. It stays: later answers may
	// come over a connection of before.
	hidden atomic.Bool
}

// NewClient reads an endpoint.
func NewClient(e Endpoint) (*Client, error) {
	at, err := url.Parse(e.URL.Reveal())
	if err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, engine.InvalidField(e.Flag, "is no address", "write http://HOST/PATH or https://HOST/PATH")
	}
	if host := strings.ToLower(at.Hostname()); egress.IsForbiddenHost(host) {
		return nil, egress.InvalidFlag(e.Flag, host)
	}
	c := &Client{at: at, headers: http.Header{}}
	secrets := []string{e.Token.Reveal(), e.Password.Reveal()}
	if e.User != "" && !e.Token.IsZero() {
		return nil, engine.InvalidField(e.Flag, "has a token and a user", "give one of them")
	}
	if at.User != nil {
		password, _ := at.User.Password()
		if e.User != "" || !e.Token.IsZero() {
			return nil, engine.InvalidField(e.Flag, "has a user, and there is another way to sign in",
				"leave one of them out")
		}
		e.User, e.Password = at.User.Username(), secret.New(password)
		secrets = append(secrets, password)
		bare := *at
		bare.User = nil
		c.at = &bare
	}
	for _, values := range at.Query() {
		secrets = append(secrets, values...)
	}
	for name, value := range e.Headers {
		c.headers.Set(name, value.Reveal())
		secrets = append(secrets, value.Reveal())
	}
	switch {
	case !e.Token.IsZero():
		c.headers.Set("Authorization", "Bearer "+e.Token.Reveal())
	case e.User != "":
		both := base64.StdEncoding.EncodeToString([]byte(e.User + ":" + e.Password.Reveal()))
		c.headers.Set("Authorization", "Basic "+both)
		secrets = append(secrets, both)
	}
	for name, values := range c.headers {
		if strings.ContainsAny(name+values[0], "\r\n\x00") {
			return nil, engine.InvalidField(e.Flag, "has a secret or header of more than one line", "write it in one line")
		}
	}
	if e.UserAgent != "" {
		c.headers.Set("User-Agent", e.UserAgent)
	}
	c.to = at.Scheme + "://" + at.Host // the path may hold a token
	c.redactor = newRedactor(secrets)
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(e.CA) > 0 {
		security.RootCAs = x509.NewCertPool()
		if !security.RootCAs.AppendCertsFromPEM(e.CA) {
			return nil, engine.InvalidField(e.Flag, "has a file of authorities without a certificate", "write PEM")
		}
	}
	dial := e.Egress.Dial
	if e.HideInternal {
		dial = c.noteInternal(dial)
	}
	c.http = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dial,
			TLSClientConfig: security, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, MaxConnsPerHost: 2,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// noteInternal is a dialer that notes when it has reached an internal address.
func (c *Client) noteInternal(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		at, unknown := netip.ParseAddrPort(conn.RemoteAddr().String())
		if unknown != nil || egress.IsInternal(at.Addr()) {
			c.hidden.Store(true)
		}
		return conn, nil
	}
}

// newRedactor replaces what is secret; texts of fewer bytes are words of any answer.
func newRedactor(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		if len(s) >= 4 {
			pairs = append(pairs, s, "***")
		}
	}
	return strings.NewReplacer(pairs...)
}

// To is the endpoint without secrets.
func (c *Client) To() string { return c.to }

// Close lets go of connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Response is what an endpoint has said.
type Response struct {
	Status int
	Header http.Header
	// Body is the beginning of what it has said, and Text the same as it may stand in a log.
	Body []byte
	Text string
}

// OK reports whether it has taken what was sent.
func (a *Response) OK() bool { return a != nil && a.Status/100 == 2 }

// Err is what an answer says that is none of success.
func (a *Response) Err() error {
	switch {
	case a.OK():
		return nil
	case a.Status/100 == 3:
		return fmt.Errorf("the endpoint redirects (%d), and redirects are not followed", a.Status)
	case a.Text == "":
		return fmt.Errorf("the endpoint answers %d", a.Status)
	}
	return fmt.Errorf("the endpoint answers %d: %s", a.Status, a.Text)
}

// OutcomeOf says what an answer, or an error in place of one, means for n things that were sent together.
func OutcomeOf(a *Response, err error, n int) Outcome {
	switch {
	case err != nil:
		return Outcome{Retry: true, Err: err}
	case a.OK():
		return Outcome{Delivered: n}
	}
	again, after := a.Retryable()
	return Outcome{Retry: again, RetryAfter: after, Err: a.Err()}
}

// Retryable reports whether what was sent may be taken later, and when that is where the answer says so.
func (a *Response) Retryable() (again bool, after time.Duration) {
	if a.Status/100 != 5 && a.Status != http.StatusTooManyRequests && a.Status != http.StatusRequestTimeout {
		return false, 0
	}
	text := a.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return true, time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return true, max(0, time.Until(at))
	}
	return true, 0
}

// Post sends a body to a path below the endpoint, "" for itself. An error is of an endpoint that has not answered.
func (c *Client) Post(
	ctx context.Context,
	path, contentType string,
	body []byte,
	headers ...string,
) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	at := c.at
	if path != "" {
		at = at.JoinPath(path)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), strings.NewReader(string(body)))
	if err != nil {
		return nil, c.redactError(err)
	}
	for name, values := range c.headers {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := c.http.Do(r)
	if err != nil {
		return nil, c.redactError(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, maxResponseBytes))
	if err != nil && got.StatusCode/100 == 2 {
		return nil, c.redactError(err) // what it has not said is not known
	}
	a := &Response{Status: got.StatusCode, Header: got.Header, Body: text, Text: c.LogText(string(text))}
	if c.hidden.Load() {
		a.Text = ""
	}
	return a, nil
}

// LogText is a text of somebody else's as it may stand in a log.
func (c *Client) LogText(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(textsafe.OneLine(c.redactor.Replace(text))), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	return text
}

// redactError is an error without the address, in which there may be a secret.
func (c *Client) redactError(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the endpoint has not answered for %s: %w", attemptTimeout, context.DeadlineExceeded)
	}
	// What speaks no HTTP is quoted in the error, and so are the names of a certificate.
	var unreached *net.OpError
	if c.hidden.Load() && !errors.As(err, &unreached) && !errors.Is(err, context.Canceled) {
		return errors.New("the endpoint is in a private network, and does not answer in HTTP")
	}
	if hidden := c.redactor.Replace(err.Error()); hidden != err.Error() {
		return errors.New(hidden)
	}
	return err
}
