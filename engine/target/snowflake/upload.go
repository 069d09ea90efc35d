package snowflake

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// uploadKey is the key of an *upload in the context of a PUT and of all requests that gosnowflake makes for it.
type uploadKey struct{}

const (
	// stagePatience is how long a stage may be away or too busy before an upload is given up; gosnowflake itself
	// would try for minutes, and its pauses end with nothing.
	stagePatience = 20 * time.Second
	// maxUploads is how often a file is uploaded when the stage says that the credentials of the time before have
	// expired. gosnowflake (2.1) means to ask for new ones itself, does not, and calls the file stored.
	maxUploads = 3
	// maxPutAnswer bounds the account's answer to a PUT, maxStageError what a stage says of an error.
	maxPutAnswer  = 4 << 20
	maxStageError = 64 << 10
)

// stageError is why a stage did not take a file.
type stageError struct {
	class engine.ErrorClass
	code  string
	said  string
}

func (e *stageError) Error() string { return e.said }

// upload is one PUT: the file it is about, the places to which the account's own answer lets it go, and whether it has
// failed. gosnowflake repeats what a stage refuses and forgets why; upload keeps the reason, and whoever waits for the
// PUT has it at once. All that gosnowflake still asks after that is answered from here, so that it comes to an end.
type upload struct {
	file string
	t    *transport
	// ctx ends with the PUT's own context and when the upload fails.
	ctx context.Context
	end context.CancelFunc

	mu       sync.Mutex
	places   []place
	rounds   http.RoundTripper
	flying   int       // requests under way
	moved    time.Time // when one of them began or sent something
	stumbled error     // the fault since which nothing was taken, and since when
	since    time.Time
	waiting  *time.Timer
	failed   error
}

func newUpload(ctx context.Context, t *transport, file string) *upload {
	u := &upload{file: file, t: t, rounds: t.base}
	u.ctx, u.end = context.WithCancel(ctx)
	return u
}

func uploadOf(ctx context.Context) *upload {
	u, _ := ctx.Value(uploadKey{}).(*upload)
	return u
}

// close ends what still waits.
func (u *upload) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting != nil {
		u.waiting.Stop()
	}
	u.end()
}

// fail ends the upload; the first reason stays.
func (u *upload) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failed == nil {
		u.failed = err
	}
	u.end()
}

func (u *upload) failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.failed
}

func failure(class engine.ErrorClass, code, hint, format string, args ...any) error {
	known := engine.CodeTarget
	if class == engine.ErrClassThrottled || class == engine.ErrClassConnection {
		known = engine.CodeUnavailable
	}
	said := fmt.Sprintf(format, args...)
	return &engine.Error{Code: known, Message: said, Hint: hint, Cause: &stageError{class, code, said}}
}

// place is where a stage keeps files: all paths of a host that begin with prefix, or just the one path.
type place struct {
	host, prefix string
	exact        bool
}

// stageInfo is what the answer to a PUT says of the stage.
type stageInfo struct {
	LocationType   string `json:"locationType"`
	Location       string `json:"location"`
	Path           string `json:"path"`
	Region         string `json:"region"`
	StorageAccount string `json:"storageAccount"`
	EndPoint       string `json:"endPoint"`
	PresignedURL   string `json:"presignedUrl"`
	// Authority is the stand-in's certificate; it counts on plain connections alone, which are of this machine.
	Authority string `json:"certificateAuthority"`
}

// placesOf lists where gosnowflake may store files by the account's own words; none is a kind of stage that is not
// allowed.
func placesOf(s *stageInfo) (list []place) {
	bucket, prefix, _ := strings.Cut(strings.TrimLeft(s.Location, "/"), "/")
	prefix = strings.Trim(prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	add := func(host string, withBucket bool) {
		at := "/" + prefix
		if withBucket {
			at = "/" + bucket + at
		}
		list = append(list, place{host: plainHost(host), prefix: at})
	}
	if bucket == "" {
		return nil
	}
	switch strings.ToUpper(s.LocationType) {
	case "S3":
		domain := "amazonaws.com"
		if strings.HasPrefix(strings.ToLower(s.Region), "cn-") {
			domain = "amazonaws.com.cn"
		}
		hosts := []string{"s3." + s.Region + "." + domain, "s3." + domain}
		if s.EndPoint != "" {
			hosts = []string{s.EndPoint}
		}
		for _, host := range hosts {
			add(host, true)
			add(bucket+"."+host, false)
		}
	case "AZURE":
		// gosnowflake writes below path, which is the container, and others below location.
		add(s.StorageAccount+"."+s.EndPoint, true)
		if container := strings.Trim(s.Path, "/"); container != "" {
			list = append(
				list,
				place{host: plainHost(s.StorageAccount + "." + s.EndPoint), prefix: "/" + container + "/" + prefix},
			)
		}
	case "GCS":
		if at, err := url.Parse(s.PresignedURL); err == nil && at.Host != "" {
			return []place{{host: plainHost(at.Host), prefix: at.Path, exact: true}}
		}
		hosts := []string{"storage.googleapis.com", "storage." + strings.ToLower(s.Region) + ".rep.googleapis.com"}
		if s.EndPoint != "" {
			hosts = []string{s.EndPoint}
		} else {
			add(bucket+".storage.googleapis.com", false)
		}
		for _, host := range hosts {
			add(host, true)
		}
		if s.EndPoint != "" {
			add(s.EndPoint, false) // gosnowflake leaves the bucket out when the host has it
		}
	}
	return list
}

// plainHost is a host as it is compared.
func plainHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ":443") }

// holds reports whether a request goes to a place.
func (p place) holds(at *url.URL) bool {
	if plainHost(at.Host) != p.host {
		return false
	}
	if p.exact {
		return at.Path == p.prefix
	}
	for part := range strings.SplitSeq(at.Path, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return strings.HasPrefix(at.Path, p.prefix) && len(at.Path) > len(p.prefix)
}

// learn reads where an upload may go from the account's answer to it, and leaves the answer as it was. What the
// account must not ask for comes back as a refusal.
func (u *upload) learn(resp *http.Response) (*http.Response, error) {
	if resp.StatusCode != http.StatusOK {
		return resp, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPutAnswer))
	_ = resp.Body.Close() // it has been read, or is of no use
	if err != nil {
		return nil, fmt.Errorf("reading the answer to a PUT: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	var answer struct {
		Success bool `json:"success"`
		Data    struct {
			Command string    `json:"command"`
			Files   []string  `json:"src_locations"`
			Stage   stageInfo `json:"stageInfo"`
		} `json:"data"`
	}
	// What cannot be read is gosnowflake's to tell; a statement that still runs, or was refused, names no stage.
	if json.Unmarshal(text, &answer) != nil || !answer.Success || answer.Data.Command == "" {
		return resp, nil //nolint:nilerr // see above
	}
	if err := u.trust(answer.Data.Command, answer.Data.Files, &answer.Data.Stage); err != nil {
		u.fail(err)
		return u.farewell(resp.Request), nil
	}
	return resp, nil
}

// trust notes the places that an answer names, or says what is wrong with it.
func (u *upload) trust(command string, files []string, s *stageInfo) error {
	const hint = "Whatever answers is not a Snowflake account, or speaks a newer protocol than Loadstone knows."
	if !strings.EqualFold(command, "UPLOAD") || !slices.Equal(files, []string{u.file}) {
		return failure(engine.ErrClassOther, codeForbidden, hint,
			"The account asks for other files than the one that was offered. Nothing was sent.")
	}
	list := placesOf(s)
	if len(list) == 0 {
		return failure(engine.ErrClassOther, codeForbidden, hint,
			"The account keeps its stage in a place of the kind %q, where Loadstone sends nothing; there are S3, AZURE and GCS.",
			shortStatement(s.LocationType))
	}
	rounds := http.RoundTripper(u.t.base)
	if u.t.scheme == "http" {
		for _, p := range list {
			// A host with a port, or with the bucket in front of it: all of them have to be of this machine.
			if host := (&url.URL{Host: p.host}).Hostname(); isLoopback(host) && s.Authority != "" {
				rounds = u.t.trusting(s.Authority)
			}
		}
		list = slices.DeleteFunc(list, func(p place) bool { return !isLoopback((&url.URL{Host: p.host}).Hostname()) })
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.places, u.rounds = list, rounds
	return nil
}

// roundTrip carries a request to a stage.
func (u *upload) roundTrip(r *http.Request) (*http.Response, error) {
	if u.failure() != nil {
		return u.farewell(r), nil // whoever waits for the upload has the error
	}
	u.mu.Lock()
	places, rounds := u.places, u.rounds
	u.mu.Unlock()
	if r.Method == http.MethodGet && r.URL.Query().Has("accelerate") {
		// Whether a bucket has faster addresses: they are others than the account has named.
		return respond(r, http.StatusOK, "application/xml", "<AccelerateConfiguration/>"), nil
	}
	if !slices.ContainsFunc(places, func(p place) bool { return p.holds(r.URL) }) || r.URL.Scheme != "https" ||
		r.Method == http.MethodGet || strings.HasPrefix(r.Header.Get("Authorization"), "Snowflake") {
		u.fail(failure(engine.ErrClassOther, codeForbidden, "The account, or what stands before it, names one place and "+
			"the upload went to another.", "The upload was refused by Loadstone: %s to %s, which is not where the account "+
			"has its stage.", r.Method, r.URL.Host))
		return u.farewell(r), nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(u.ctx, cancel) //nolint:contextcheck // the request ends with either
	done := func() { stop(); cancel() }
	u.depart()
	defer u.arrive()
	sent := r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		sent.Body = &moving{r.Body, u}
	}
	resp, err := rounds.RoundTrip(sent)
	if err != nil {
		done()
		u.stumble(unreachable(r.URL.Host, err))
		return nil, err
	}
	resp.Body = &closing{resp.Body, done}
	return u.judge(r, resp)
}

func unreachable(host string, err error) error {
	return failure(engine.ErrClassConnection, codeConnection, stageHint,
		"The account's stage at %s cannot be reached: %s.", host, stageWords(err))
}

// stageWords say why there was no answer; a certificate is named, because a proxy may have put its own there.
func stageWords(err error) string {
	var network net.Error
	switch text := networkWords(err); {
	case text != "no answer":
		return text
	case strings.Contains(err.Error(), "x509:"), strings.Contains(err.Error(), "tls:"):
		return "its certificate is not trusted"
	case errors.As(err, &network) && network.Timeout():
		return "no answer in time"
	default:
		return text
	}
}

const stageHint = "Files go to the storage of the account's cloud, which needs the way open as the account does: " +
	"SELECT SYSTEM$ALLOWLIST() lists the hosts (type STAGE)."

// judge looks at a stage's answer: what ends an upload, what gosnowflake repeats, and for how long it may.
func (u *upload) judge(r *http.Request, resp *http.Response) (*http.Response, error) {
	code := resp.StatusCode
	if code < 300 {
		if r.Method != http.MethodHead {
			u.progress()
		}
		return resp, nil
	}
	if code < 400 || r.Method == http.MethodHead && code < 500 {
		return resp, nil // another address, which is judged in its turn; a file that is not there yet
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxStageError)) // what there is of it
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	said := stageSays(code, text)
	if code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500 {
		class := engine.ErrClassThrottled
		u.stumble(failure(class, "stage_"+strconv.Itoa(code), "It is tried again. https://status.snowflake.com and that of "+
			"the cloud say whether the region has a problem.", "The account's stage at %s takes no files now: %s.",
			r.URL.Host, said))
		return resp, nil
	}
	if expired(r, code, text) {
		u.fail(failure(engine.ErrClassAuth, codeExpired, "Compare this machine's clock with the right time; a slow "+
			"line can also take longer for a file than credentials are good for.",
			"The account's stage at %s refuses the credentials that the account has just given: %s.", r.URL.Host, said))
		return u.farewell(r), nil
	}
	hint := stageHint + " A storage integration, a private link or a proxy may refuse this machine."
	if strings.Contains(said, "RequestTimeTooSkewed") {
		hint = "Set this machine's clock, with NTP for example."
	}
	u.fail(failure(engine.ErrClassAuth, "stage_"+strconv.Itoa(code), hint,
		"The account's stage at %s refuses the upload: %s.", r.URL.Host, said))
	return u.farewell(r), nil
}

// codeExpired is the code of an upload whose credentials have ended.
const codeExpired = "stage_expired"

// expired tells answers that ask for new credentials.
func expired(r *http.Request, code int, text []byte) bool {
	switch {
	case bytes.Contains(text, []byte("<Code>ExpiredToken</Code>")):
		return true
	case code == http.StatusForbidden:
		return bytes.Contains(text, []byte("Signature not valid in the specified time frame")) ||
			bytes.Contains(text, []byte("Server failed to authenticate the request"))
	case code == http.StatusUnauthorized:
		return true
	}
	return code == http.StatusBadRequest && r.URL.Query().Has("X-Goog-Signature")
}

// stageSays is an answer's status, and the code in its XML if there is one.
func stageSays(code int, text []byte) string {
	said := fmt.Sprintf("HTTP %d", code)
	if name := http.StatusText(code); name != "" {
		said += " (" + strings.ToLower(name) + ")"
	}
	_, after, found := bytes.Cut(text, []byte("<Code>"))
	if name, _, closed := bytes.Cut(after, []byte("</Code>")); found && closed && len(name) <= 64 {
		said += ", " + strings.ToValidUTF8(string(name), "\uFFFD")
	}
	return said
}

// depart notes a request that sets out, arrive one that has come to an end.
func (u *upload) depart() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.flying++
	u.moved = time.Now()
}

func (u *upload) arrive() {
	u.mu.Lock()
	u.flying--
	u.mu.Unlock()
	u.overdue()
}

// moving is the body of a request, which notes that something of it is sent.
type moving struct {
	io.ReadCloser
	u *upload
}

func (m *moving) Read(p []byte) (int, error) {
	m.u.mu.Lock()
	m.u.moved = time.Now()
	m.u.mu.Unlock()
	return m.ReadCloser.Read(p)
}

// progress notes that a stage takes something.
func (u *upload) progress() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stumbled = nil
	if u.waiting != nil {
		u.waiting.Stop()
		u.waiting = nil
	}
}

// stumble notes a fault that may pass: the upload ends with it unless something is taken within stagePatience, or is
// being sent then.
func (u *upload) stumble(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stumbled == nil && u.failed == nil && u.ctx.Err() == nil {
		u.stumbled, u.since = err, time.Now()
		u.waiting = time.AfterFunc(u.t.patience, u.overdue)
	}
}

// overdue ends an upload that has stumbled stagePatience ago. One that sends something has that time from its last
// byte.
func (u *upload) overdue() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stumbled == nil || u.failed != nil || time.Since(u.since) < u.t.patience {
		return
	}
	if left := u.t.patience - time.Since(u.moved); u.flying > 0 && left > 0 {
		u.waiting.Reset(left)
		return
	}
	u.failed = u.stumbled
	u.end()
}

// farewell answers what gosnowflake still asks after an upload has failed, with what it does not pause for: a stage's
// credentials have expired, and the account gives no more.
func (u *upload) farewell(r *http.Request) *http.Response {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	switch {
	case r.URL.Host == u.t.account:
		return respond(r, http.StatusOK, "application/json",
			`{"data":{},"code":"000000","message":"The upload has ended.","success":false}`)
	case strings.HasPrefix(r.Header.Get("Authorization"), "AWS4"):
		return respond(r, http.StatusBadRequest, "application/xml", "<Error><Code>ExpiredToken</Code></Error>")
	case r.URL.Query().Has("sig"):
		return respond(r, http.StatusForbidden, "application/xml", "Server failed to authenticate the request")
	}
	return respond(r, http.StatusUnauthorized, "text/plain", "expired")
}

func respond(r *http.Request, code int, kind, text string) *http.Response {
	return &http.Response{Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {kind}}, ContentLength: int64(len(text)),
		Body: io.NopCloser(strings.NewReader(text)), Request: r}
}

// trusting is the transport to a stage of this machine whose certificate the stand-in has sent.
func (t *transport) trusting(authority string) http.RoundTripper {
	t.standIn.Lock()
	defer t.standIn.Unlock()
	if t.standIn.rounds == nil || t.standIn.authority != authority {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(authority)) // without one nothing is trusted
		if t.standIn.rounds != nil {
			t.standIn.rounds.CloseIdleConnections()
		}
		t.standIn.rounds = t.base.Clone()
		t.standIn.rounds.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		t.standIn.authority = authority
	}
	return t.standIn.rounds
}
