package snowsim

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/snowflakedb/gosnowflake/v2"
)

var clouds = []string{StagesS3, StagesAzure, StagesGCS}

// trusting is what the unmodified driver takes for its requests: it trusts the certificate of the stages.
func trusting(t testing.TB, s *Server) http.RoundTripper {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(s.StageAuthority())) {
		t.Fatal("the stages have no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func openWithStages(t testing.TB, s *Server) *sql.DB {
	t.Helper()
	c := config(t, s.DSN())
	c.Transporter = trusting(t, s)
	return open(t, c)
}

func write(t testing.TB, content []byte) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "file.parquet")
	if err := os.WriteFile(at, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

const options = " AUTO_COMPRESS = FALSE SOURCE_COMPRESSION = NONE OVERWRITE = TRUE"

// TestTheOfficialDriverStoresFiles: it encrypts and uploads to each cloud, in one piece and in parts, and what the
// account reads is what was given; LIST and REMOVE go by the beginnings of names.
func TestTheOfficialDriverStoresFiles(t *testing.T) {
	t.Parallel()
	for _, cloud := range clouds {
		t.Run(cloud, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *Options) { o.Stages = cloud })
			db := openWithStages(t, s)
			content := bytes.Repeat([]byte("0123456789abcdef"), 6<<20/16+1)
			from := write(t, content[:6<<20+5])
			ctx := gosnowflake.WithFileTransferOptions(t.Context(),
				&gosnowflake.SnowflakeFileTransferOptions{MultiPartThreshold: 5 << 20})
			for i, path := range []string{"a/1", "a/10", "b"} {
				ctx := ctx
				if i > 0 {
					ctx = t.Context()
				}
				var row [8]any
				scan := make([]any, len(row))
				for i := range row {
					scan[i] = &row[i]
				}
				if err := db.QueryRowContext(ctx, "PUT 'file://"+from+"' '@~/"+path+"'"+options).Scan(scan...); err != nil ||
					row[6] != "UPLOADED" {
					t.Fatalf("%v, %v", row, err)
				}
			}
			text, found, err := s.stages.open(userPrefix(DefaultUser) + "a/1/file.parquet")
			if err != nil || !found || !bytes.Equal(text, content[:6<<20+5]) {
				t.Errorf("the account reads %d bytes, %t, %v", len(text), found, err)
			}
			if f := s.stages.file(userPrefix(DefaultUser) + "b/file.parquet"); bytes.Contains(f.body, content[:64]) {
				t.Error("the file is not encrypted")
			}
			if cloud == StagesS3 && s.stages.parts.Load() < 2 {
				t.Error("nothing came in parts")
			}
			for _, c := range []struct{ sql, want string }{
				{"LIST @~/a", "a/1/file.parquet a/10/file.parquet"}, {"REMOVE '@~/a/1/'", "a/1/file.parquet"},
				{"REMOVE @~/a/1", "a/10/file.parquet"}, {"LIST '@~'", "b/file.parquet"}, {"RM @~", "b/file.parquet"}, {"LS @~", ""},
			} {
				if got := firstColumn(t, db, c.sql); got != c.want {
					t.Errorf("%s gives %q, not %q", c.sql, got, c.want)
				}
			}
		})
	}
}

func firstColumn(t testing.TB, db *sql.DB, text string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		row := make([]sql.NullString, len(columns))
		scan := make([]any, len(row))
		for i := range row {
			scan[i] = &row[i]
		}
		if err := rows.Scan(scan...); err != nil {
			t.Fatal(err)
		}
		list = append(list, row[0].String)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

// TestStagesRefuse: what the driver sends is taken, and the same with anything of it changed is not.
func TestStagesRefuse(t *testing.T) {
	t.Parallel()
	for _, cloud := range clouds {
		s := start(t, func(o *Options) { o.Stages = cloud })
		c := config(t, s.DSN())
		tampering := &tampering{t: t, s: s, next: trusting(t, s), statuses: map[string]int{}}
		c.Transporter = tampering
		var row [8]any
		scan := make([]any, len(row))
		for i := range row {
			scan[i] = &row[i]
		}
		err := open(
			t,
			c,
		).QueryRowContext(
			t.Context(),
			"PUT 'file://"+write(t, []byte("text"))+"' '@~/a'"+options,
		).Scan(
			scan...)
		if err != nil || row[6] != "UPLOADED" {
			t.Fatalf("%v, %v", row, err)
		}
		ended := map[string]int{StagesS3: 400, StagesAzure: 403, StagesGCS: 401}[cloud]
		want := map[string]int{"another user's": 403, "no credentials": 403, "expired": ended, "403": 403, "503": 503}
		switch cloud {
		case StagesS3: // the only one that signs headers; bodies are not, over TLS
			want["metadata"], want["late"] = 403, 403
		case StagesGCS:
			want["no credentials"] = 401
		}
		for name, status := range want {
			if got := tampering.statuses[name]; got != status {
				t.Errorf("%s, %s: HTTP %d, not %d", cloud, name, got, status)
			}
		}
		if n := len(s.stages.files("", false)); n != 1 {
			t.Errorf("%s: there are %d files", cloud, n)
		}
	}
}

// tampering sends each upload changed in several ways before it sends it as it is.
type tampering struct {
	t        *testing.T
	s        *Server
	next     http.RoundTripper
	statuses map[string]int
}

func (c *tampering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" || r.Method != http.MethodPut {
		return c.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	send := func(name string, change func(*http.Request)) {
		changed := r.Clone(r.Context())
		changed.Body = io.NopCloser(bytes.NewReader(body))
		change(changed)
		resp, err := c.next.RoundTrip(changed)
		if err != nil {
			c.t.Errorf("%s: %v", name, err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		c.statuses[name] = resp.StatusCode
	}
	if len(c.statuses) == 0 {
		send("another user's", func(r *http.Request) {
			text := strings.Replace(r.URL.String(), fmt.Sprintf("%x", DefaultUser), fmt.Sprintf("%x", "X"), 1)
			r.URL, _ = url.Parse(text)
		})
		send("no credentials", func(r *http.Request) {
			r.Header.Del("Authorization")
			q := r.URL.Query()
			q.Del("sig")
			r.URL.RawQuery = q.Encode()
		})
		send("metadata", func(r *http.Request) { r.Header.Set("X-Amz-Meta-Sfc-Digest", "x") })
		send("late", func(r *http.Request) {
			r.Header.Set("X-Amz-Date", time.Now().Add(-16*time.Minute).UTC().Format("20060102T150405Z"))
		})
		c.s.stages.expire()
		send("expired", func(*http.Request) {})
		c.s.stages.mu.Lock()
		for id, known := range c.s.stages.credentials {
			known.expires = time.Now().Add(time.Hour)
			c.s.stages.credentials[id] = known
		}
		c.s.stages.mu.Unlock()
		for _, kind := range []string{FaultForbidden, FaultUnavailable} {
			if err := c.s.faults.set([]Fault{{Kind: kind, On: "stage", Every: 1}}); err != nil {
				c.t.Error(err)
			}
			send(kind, func(*http.Request) {})
		}
		_ = c.s.faults.set(nil) // nothing is always right
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return c.next.RoundTrip(r)
}

// TestTimesOfParquetAreNumbersUnlessAskedFor: an account's default makes a time of a microsecond's number, read as
// seconds.
func TestTimesOfParquetAreNumbersUnlessAskedFor(t *testing.T) {
	t.Parallel()
	type row struct {
		At int64 `parquet:"AT,timestamp(microsecond)"`
	}
	moment := time.Date(2026, 11, 22, 12, 0, 0, 123456000, time.UTC)
	var file bytes.Buffer
	if err := parquet.Write(&file, []row{{moment.UnixMicro()}}); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{"": "2262", ", USE_LOGICAL_TYPE = FALSE": "2262",
		" USE_LOGICAL_TYPE = TRUE": "2026-11-22 12:00:00.123456"} {
		s := start(t, func(o *Options) { o.plain = nil })
		db := openWithStages(t, s)
		for _, text := range []string{"CREATE TABLE T (AT TIMESTAMP_NTZ)", "PUT 'file://" + write(t, file.Bytes()) +
			"' '@~/a'" + options, fmt.Sprintf("COPY INTO T FROM '@~/a/' FILES = ('file.parquet') FILE_FORMAT = (TYPE = "+
			"PARQUET%s) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE ON_ERROR = ABORT_STATEMENT FORCE = TRUE", format)} {
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		if got := firstColumn(
			t,
			db,
			"SELECT TO_CHAR(AT, 'YYYY-MM-DD HH24:MI:SS.FF6') FROM T",
		); !strings.HasPrefix(
			got,
			want,
		) {
			t.Errorf("with %q: %s", format, got)
		}
	}
}
