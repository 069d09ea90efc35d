// Package s3test gives tests an S3 server to keep results in: a real one, where
// `make s3-server` has built it, and a stand-in at the protocol; and a proxy that
// does to requests what networks and overloaded servers do.
package s3test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Server is where results can be kept.
type Server struct {
	Endpoint, Access, Secret, Bucket string
	handler                          http.Handler
}

// Address is what --results takes.
func (s Server) Address(prefix string) string {
	return "s3://" + s.Bucket + "/" + prefix + "?endpoint=" + url.QueryEscape(s.Endpoint)
}

// Environment gives the keys to this process, and nothing else of the machine's.
func (s Server) Environment(t testing.TB) {
	t.Setenv("AWS_ACCESS_KEY_ID", s.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	ClearEnvironment(t)
}

// ClearEnvironment keeps the machine's own configuration away.
func ClearEnvironment(t testing.TB) {
	for _, name := range []string{"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
}

// binary is the real server, as the Makefile builds it: below the folder of go.mod.
func binary() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			path := filepath.Join(dir, ".cache", "bin", "s3server")
			_, err := os.Stat(path)
			return path, err
		}
	}
}

// Real starts the real server with a bucket. The test is skipped where it is not
// built, unless LOADSTONE_S3_SERVER says that it has to be.
func Real(t testing.TB, bucket string) Server {
	path, err := binary()
	if err != nil {
		if os.Getenv("LOADSTONE_S3_SERVER") != "" {
			t.Fatalf("the S3 server is not built: %v", err)
		}
		t.Skip("the S3 server is not built: make s3-server does, and make check runs this test")
	}
	s := Server{Access: "loadstone-test", Secret: "a-secret-that-no-log-may-show", Bucket: bucket}
	probe, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.Addr().String()
	_ = probe.Close()
	s.Endpoint = "http://" + address
	cmd := exec.CommandContext(context.Background(), path, t.TempDir(), address)
	cmd.Env = append(os.Environ(), "S3SERVER_ACCESS="+s.Access, "S3SERVER_SECRET="+s.Secret)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// It ends with its input, also when this process is killed.
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	client := s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &s.Endpoint, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(s.Access, s.Secret, "")})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, err = client.CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
		if err == nil {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the S3 server does not start: %v\n%s", err, out.String())
		}
	}
}

// Fault does something else with a request than to answer it; it returns whether it did.
type Fault func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool

// Proxy stands before a server; a fault meets every request.
type Proxy struct {
	Server
	fault    atomic.Pointer[Fault]
	Requests atomic.Int64
	// Sent is how many bytes of bodies were sent to the client.
	Sent atomic.Int64
}

// NewProxy starts one without a fault.
func NewProxy(t testing.TB, to Server) *Proxy {
	p := &Proxy{Server: to}
	forward := to.handler
	if forward == nil {
		target, err := url.Parse(to.Endpoint)
		if err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{}
		t.Cleanup(tr.CloseIdleConnections)
		forward = &httputil.ReverseProxy{Transport: tr, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // which is signed
		}}
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Requests.Add(1)
		counted := &counting{ResponseWriter: w, sent: &p.Sent}
		if f := p.fault.Load(); f == nil || !(*f)(counted, r, forward) {
			forward.ServeHTTP(counted, r)
		}
	}))
	t.Cleanup(served.Close)
	p.Endpoint = served.URL
	return p
}

// Set puts a fault in place; nil takes it away.
func (p *Proxy) Set(f Fault) {
	if f == nil {
		p.fault.Store(nil)
		return
	}
	p.fault.Store(&f)
}

type counting struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c *counting) Write(b []byte) (int, error) {
	c.sent.Add(int64(len(b)))
	return c.ResponseWriter.Write(b)
}

func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Overloaded answers 503, after the request was read.
func Overloaded(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	_, _ = io.Copy(io.Discard, r.Body)
	refuse(w, http.StatusServiceUnavailable, "SlowDown")
	return true
}

// HangRequest takes a request and answers nothing until the client has gone.
func HangRequest(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	return true
}

// ApplyTwice applies every request twice and gives the second answer, as when the first was lost on its way.
func ApplyTwice(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
	body, _ := io.ReadAll(r.Body)
	first := r.Clone(r.Context())
	first.Body = io.NopCloser(bytes.NewReader(body))
	forward.ServeHTTP(httptest.NewRecorder(), first)
	r.Body = io.NopCloser(bytes.NewReader(body))
	forward.ServeHTTP(w, r)
	return true
}

// DropResponse applies a request and breaks the connection instead of answering.
func DropResponse(_ http.ResponseWriter, r *http.Request, forward http.Handler) bool {
	forward.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// TruncateResponse sends half a body and breaks the connection.
func TruncateResponse(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
	if r.Method != http.MethodGet || r.Header.Get("Range") == "" {
		return false
	}
	whole := httptest.NewRecorder()
	forward.ServeHTTP(whole, r)
	for name, values := range whole.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(whole.Code)
	_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// OneIn applies a fault to one request in n.
func OneIn(n int64, f Fault) Fault {
	var at atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		return at.Add(1)%n == 0 && f(w, r, forward)
	}
}

// After lets n requests that match pass, and applies the fault to those that follow.
func After(n int64, matches func(*http.Request) bool, f Fault) Fault {
	var at atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		return matches(r) && at.Add(1) > n && f(w, r, forward)
	}
}

// MatchMethods matches the requests of a method.
func MatchMethods(method string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method }
}

// AccessDenied answers that the keys may not do that.
func AccessDenied(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	_, _ = io.Copy(io.Discard, r.Body)
	refuse(w, http.StatusForbidden, "AccessDenied")
	return true
}

// IgnoreConditions is a server that does not look at conditions of writes.
func IgnoreConditions(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	r.Header.Del("If-None-Match")
	return false
}

// ConcurrentWriter answers a conditional write as when another writer is at it, and has written nothing yet.
func ConcurrentWriter(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	if r.Header.Get("If-None-Match") == "" {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	return true
}

// First applies a fault to the first n requests that match.
func First(n int64, matches func(*http.Request) bool, f Fault) Fault {
	var at atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		return matches(r) && at.Add(1) <= n && f(w, r, forward)
	}
}

// NotImplemented is a server that refuses conditions of writes.
func NotImplemented(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	if r.Header.Get("If-None-Match") == "" {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	refuse(w, http.StatusNotImplemented, "NotImplemented")
	return true
}
