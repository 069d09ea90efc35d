package delivery_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type thing int

func (thing) Bytes() int { return 10 }

// TestTheOldestGiveWay: a queue holds as many things, and bytes, as it may; who puts something never waits.
func TestTheOldestGiveWay(t *testing.T) {
	for name, l := range map[string]delivery.Limits{"things": {MaxItems: 5, MaxBytes: 1000, BatchSize: 2},
		"bytes": {MaxItems: 1000, MaxBytes: 50, BatchSize: 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []thing
				open := make(chan struct{})
				q := delivery.Open("there", l, func(_ context.Context, things []thing, _ int) delivery.Outcome {
					<-open
					got = append(got, things...)
					return delivery.Outcome{}
				}, zerolog.Nop())
				begun := time.Now()
				q.Enqueue(0)
				synctest.Wait() // it is on its way
				for i := 1; i <= 9; i++ {
					q.Enqueue(thing(i))
				}
				if c := q.Counts(); c.Waiting != 5 || c.Bytes != 50 || c.Lost[delivery.LostQueueFull] != 5 {
					t.Errorf("%+v", c)
				}
				if time.Since(begun) != 0 {
					t.Errorf("waited for %s", time.Since(begun))
				}
				close(open)
				q.Close(t.Context())
				if !slices.Equal(got, []thing{0, 6, 7, 8, 9}) {
					t.Error(got)
				}
			})
		})
	}
}

// TestPausesGrow: attempts are made after growing pauses that have some chance in them, and not before the time that
// the other side has named.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begun := time.Now()
		q := delivery.Open("there", delivery.Limits{MaxItems: 10, MaxBytes: 1000, BatchSize: 5, MinBackoff: time.Second,
			MaxBackoff: 8 * time.Second}, func(_ context.Context, _ []thing, attempt int) delivery.Outcome {
			at = append(at, time.Since(begun))
			begun = time.Now()
			if attempt == 6 {
				return delivery.Outcome{Retry: true, RetryAfter: time.Minute, Err: errors.New("later")}
			}
			return delivery.Outcome{Retry: attempt < 7, Err: errorOf(attempt < 7)}
		}, zerolog.Nop())
		q.Enqueue(1)
		q.Close(t.Context())
		for i, d := range at[1:] {
			whole := min(time.Second<<i, 8*time.Second)
			if i == 6 {
				whole = time.Minute
			}
			if d < whole/2 || d > whole+time.Millisecond {
				t.Errorf("pause %d was %s, of %s", i, d, whole)
			}
		}
		if c := q.Counts(); len(at) != 8 || c.Sent != 1 || c.Retries != 7 {
			t.Errorf("%v, %+v", at, c)
		}
	})
}

func errorOf(failed bool) error {
	if failed {
		return errors.New("no")
	}
	return nil
}

// TestAnEndDoesNotWait: what another side does not take is lost when the time is up, and counted.
func TestAnEndDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := delivery.Open(
			"there",
			delivery.Limits{MaxItems: 10, MaxBytes: 1000, BatchSize: 1, MinBackoff: time.Second, MaxBackoff: time.Hour},
			func(ctx context.Context, _ []thing, _ int) delivery.Outcome {
				<-ctx.Done()
				return delivery.Outcome{Retry: true, Err: ctx.Err()}
			},
			zerolog.Nop(),
		)
		q.Enqueue(1, 2, 3)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begun := time.Now()
		q.Close(ctx)
		q.Enqueue(4)
		if took := time.Since(begun); took > 6*time.Second {
			t.Errorf("took %s", took)
		}
		if c := q.Counts(); c.Lost[delivery.LostShutdown] != 4 || c.Sent != 0 || c.Bytes != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestWhatIsRefusedFails: a delivery that another side does not want, or does not take for long, is told by its reason,
// and deliveries fail until one arrives.
func TestWhatIsRefusedFails(t *testing.T) {
	for why, again := range map[string]bool{delivery.LostRejected: false, delivery.LostExpired: true} {
		synctest.Test(t, func(t *testing.T) {
			q := delivery.Open("there", delivery.Limits{
				MaxItems:     10,
				MaxBytes:     1000,
				BatchSize:    1,
				MinBackoff:   time.Second,
				MaxBackoff:   time.Second,
				RetryTimeout: time.Minute,
			}, func(_ context.Context, things []thing, _ int) delivery.Outcome {
				if things[0] == 2 {
					return delivery.Outcome{}
				}
				return delivery.Outcome{Retry: again, Err: errors.New("no")}
			}, zerolog.Nop())
			q.Enqueue(1)
			time.Sleep(2 * time.Minute)
			if c := q.Counts(); !c.Failing || c.Lost[why] != 1 || c.LastError == "" || c.LastErrorAt.IsZero() {
				t.Errorf("%s: %+v", why, c)
			}
			q.Enqueue(2)
			q.Close(t.Context())
			if c := q.Counts(); c.Failing || c.Sent != 1 {
				t.Errorf("%s: %+v", why, c)
			}
		})
	}
}

func TestEndpointsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		e    delivery.Endpoint
		says string
	}{
		{delivery.Endpoint{URL: secret.New("ftp://x/y")}, "no address"},
		{delivery.Endpoint{URL: secret.New("http://")}, "no address"},
		{delivery.Endpoint{URL: secret.New("https://user:secret-word@%zz")}, "no address"},
		{delivery.Endpoint{URL: secret.New("http://169.254.169.254/latest")}, "connections to it are refused"},
		{delivery.Endpoint{URL: secret.New("http://[fe80::1%25eth0]/")}, "connections to it are refused"},
		{delivery.Endpoint{URL: secret.New("http://[::ffff:169.254.1.1]/")}, "connections to it are refused"},
		{delivery.Endpoint{URL: secret.New("http://[fd00:ec2::254]/")}, "connections to it are refused"},
		{delivery.Endpoint{URL: secret.New("http://0.0.0.0:9/")}, "connections to it are refused"},
		{delivery.Endpoint{URL: secret.New("http://METADATA.google.internal/")}, "connections to it are refused"},
		{delivery.Endpoint{URL: secret.New("http://u:secret-word@h/"), Token: secret.New("x")}, "another way"},
		{delivery.Endpoint{URL: secret.New("http://h/"), Token: secret.New("x"), User: "u"}, "give one"},
		{delivery.Endpoint{URL: secret.New("http://h/"), Token: secret.New("secret-word\nHost: y")}, "one line"},
		{delivery.Endpoint{URL: secret.New("http://h/"), CA: []byte("no certificate")}, "authorities"},
	} {
		c.e.Flag = "--remote-write"
		_, err := delivery.NewClient(c.e)
		if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(fmt.Sprintf("%+v", err), "secret-word") {
			t.Errorf("%s: %v, want %q", c.e.URL, err, c.says)
		}
	}
}

// TestWhatIsSentAndWhatIsNotSaid: who signs in does so in a header alone, elsewhere nothing is sent, and no error
// names a secret.
func TestWhatIsSentAndWhatIsNotSaid(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	var got *http.Request
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Location", other.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = w.Write(bytes.Repeat([]byte("pass-word and qu-ery "), 10_000))
	}))
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	at := strings.Replace(s.URL, "https://", "https://me:pass-word@", 1) + "/push/to-ken?key=qu-ery"
	c, err := delivery.NewClient(delivery.Endpoint{URL: secret.New(at), CA: ca,
		Headers: map[string]secret.Secret{"X-Scope-OrgID": secret.New("team")}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Post(t.Context(), "", "text/plain", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	user, password, _ := got.BasicAuth()
	if user != "me" || password != "pass-word" || got.Header.Get("X-Scope-OrgID") != "team" ||
		got.URL.RawQuery != "key=qu-ery" {
		t.Errorf("%s %v", got.URL, got.Header)
	}
	again, _ := a.Retryable()
	if a.OK() || again || elsewhere.Load() != 0 {
		t.Errorf("a redirect is followed, or tried again: %+v", a)
	}
	if text := c.To() + a.Err().Error() + a.Text; strings.Contains(text, "pass-word") ||
		strings.Contains(text, "qu-ery") || strings.Contains(text, "to-ken") ||
		len(a.Text) > 300 {
		t.Errorf("says %s", text)
	}
	// Without its authority.
	c, err = delivery.NewClient(delivery.Endpoint{URL: secret.New(at)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Post(t.Context(), "", "text/plain", nil); err == nil || !strings.Contains(err.Error(), "certificate") ||
		strings.Contains(err.Error(), "pass-word") || strings.Contains(err.Error(), "qu-ery") {
		t.Errorf("another's certificate: %v", err)
	}
}

func TestWhenToComeAgain(t *testing.T) {
	soon := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		status int
		header string
		again  bool
		after  time.Duration
	}{{429, "7", true, 7 * time.Second}, {503, soon, true, 90 * time.Second}, {500, "-5", true, 0}, {500, "x", true, 0},
		{502, "99999999999999999999", true, 0}, {408, "", true, 0}, {400, "7", false, 0}, {301, "", false, 0}} {
		a := delivery.Response{Status: c.status, Header: http.Header{"Retry-After": {c.header}}}
		again, after := a.Retryable()
		if again != c.again || (after-c.after).Abs() > 5*time.Second {
			t.Errorf("%d %q: %t, %s", c.status, c.header, again, after)
		}
	}
}

// TestAnAnswerIsShownAsText: neither a terminal nor a page obeys what an endpoint says.
func TestAnAnswerIsShownAsText(t *testing.T) {
	c, err := delivery.NewClient(delivery.Endpoint{Flag: "url", URL: secret.New("http://127.0.0.1:1/")})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.LogText("\x1b]0;owned\x07\x1b[2J\u202egnp\x00\r\nno"); got != "]0;owned[2Jgnp no" {
		t.Errorf("%q", got)
	}
}

// TestWhatIsInternalIsNotRead: whoever names an endpoint reads no service through this server that only it reaches.
func TestWhatIsInternalIsNotRead(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("the inner secret"))
	}))
	defer plain.Close()
	sealed := httptest.NewTLSServer(plain.Config.Handler)
	defer sealed.Close()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	go func() {
		for {
			conn, err := raw.Accept()
			if err != nil {
				return
			}
			// A greeting that comes before the request is an unsolicited one: the client drops it with its text.
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = conn.Write([]byte("SSH-2.0-the inner secret\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	named := strings.Replace(plain.URL, "127.0.0.1", "localhost", 1)
	for at, want := range map[string]string{plain.URL: "answers 403", named: "answers 403",
		sealed.URL: "private network", "http://" + raw.Addr().String(): "private network"} {
		for _, hide := range []bool{true, false} {
			c, err := delivery.NewClient(delivery.Endpoint{URL: secret.New(at), HideInternal: hide})
			if err != nil {
				t.Fatal(err)
			}
			a, err := c.Post(t.Context(), "", "text/plain", nil)
			if err == nil {
				err = a.Err()
			}
			c.Close()
			told := strings.Contains(err.Error(), "inner") || strings.Contains(err.Error(), "x509")
			if told == hide || hide && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, hidden %t: %v", at, hide, err)
			}
		}
	}
	// Nobody listens: that is said, whose address it is.
	raw.Close()
	c, err := delivery.NewClient(delivery.Endpoint{URL: secret.New("http://" + raw.Addr().String()), HideInternal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Post(t.Context(), "", "text/plain", nil); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
}
