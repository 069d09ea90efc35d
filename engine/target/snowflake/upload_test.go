package snowflake

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/snowsim"
)

// staging is a stand-in with stages in a cloud, and a database that stores files there.
func staging(t *testing.T, cloud string, faults ...snowsim.Fault) (*snowsim.Server, *database) {
	t.Helper()
	s := standIn(t, func(o *snowsim.Options) { o.Stages, o.Faults = cloud, faults })
	db := openDSN(t, "snowflake://"+s.DSN(), target.Config{})
	return s, db
}

var clouds = []string{snowsim.StagesS3, snowsim.StagesAzure, snowsim.StagesGCS}

// TestFilesAreStoredInEachCloud: also when the credentials that the account gave have ended, and when the stage was
// busy for a moment.
func TestFilesAreStoredInEachCloud(t *testing.T) {
	t.Parallel()
	for _, cloud := range clouds {
		for _, faults := range [][]snowsim.Fault{nil, {{Kind: snowsim.FaultExpired, On: "stage", At: 1}},
			{{Kind: snowsim.FaultUnavailable, On: "stage", At: 1}}} {
			_, db := staging(t, cloud, faults...)
			if err := db.Put(t.Context(), "a/b/file.parquet", []byte("text")); err != nil {
				t.Errorf("%s, %v: %v", cloud, faults, err)
				continue
			}
			rs, err := db.Query(t.Context(), "LIST '@~/a/b/'")
			if err != nil || len(rs.Rows) != 1 || rs.Rows[0][0] != "a/b/file.parquet" || rs.Rows[0][1] != int64(16) {
				t.Errorf("%s, %v: %v, %v", cloud, faults, rs, err)
			}
		}
	}
}

// TestStagesThatRefuse: what a stage says is the error, with its class and what to do, at once and not after the
// driver's own half a minute of trying; later uploads and statements of the same database go on.
func TestStagesThatRefuse(t *testing.T) {
	t.Parallel()
	for _, cloud := range clouds {
		for _, c := range []struct {
			kind  string
			times int64
			code  engine.Code
			class engine.ErrorClass
			said  []string
		}{
			{snowsim.FaultForbidden, 1, engine.CodeTarget, engine.ErrClassAuth, []string{"refuses the upload: HTTP 403",
				"127.0.0.1", "SYSTEM$ALLOWLIST"}},
			{snowsim.FaultUnavailable, 0, engine.CodeUnavailable, engine.ErrClassThrottled,
				[]string{"takes no files now: HTTP 503", "127.0.0.1"}},
			{snowsim.FaultExpired, 0, engine.CodeTarget, engine.ErrClassAuth, []string{"refuses the credentials", "clock"}},
		} {
			s, db := staging(t, cloud, snowsim.Fault{Kind: c.kind, On: "stage", Every: 1, Times: c.times})
			db.transport.patience = 50 * time.Millisecond
			begun := time.Now()
			err := db.Put(t.Context(), "a/file", []byte("text"))
			if took := time.Since(begun); took > 25*time.Second {
				t.Errorf("%s, %s: after %v", cloud, c.kind, took)
			}
			if !engine.HasCode(err, c.code) || db.Classify(err).Class != c.class {
				t.Errorf("%s, %s: %v, %+v", cloud, c.kind, err, db.Classify(err))
			}
			for _, part := range c.said {
				if text := engine.ErrorText(err); !strings.Contains(text, part) {
					t.Errorf("%s, %s: %q is not in %q", cloud, c.kind, part, text)
				}
			}
			if c.times == 0 {
				continue
			}
			if err := db.Put(t.Context(), "a/file", []byte("text")); err != nil {
				t.Errorf("%s, %s, afterwards: %v", cloud, c.kind, err)
			}
			if n := s.Stats().Faults; n != c.times {
				t.Errorf("%s, %s: the stage was asked %d times", cloud, c.kind, n)
			}
		}
	}
}

// TestAnUploadEndsWithItsContext: the stage does not answer.
func TestAnUploadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, db := staging(t, snowsim.StagesS3, snowsim.Fault{Kind: snowsim.FaultSlow, On: "stage", Every: 1, DelayMs: 60_000})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := db.Put(ctx, "a/file", []byte("text")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestUploadsGoNowhereElse: an account, or what stands before it, cannot have another file sent, nor to another place
// than the one that it names, nor in a way that is not a cloud's.
func TestUploadsGoNowhereElse(t *testing.T) {
	t.Parallel()
	const s3 = `"locationType":"S3","location":"bucket/users/7/a/","region":"eu-central-1"`
	answer := func(files, stage string) string {
		return `{"success":true,"data":{"command":"UPLOAD","src_locations":[` + files + `],"stageInfo":{` + stage + `}}}`
	}
	for _, c := range []struct {
		answer, method, url string
		ok                  bool
	}{
		{answer(`"/f"`, s3), "PUT", "https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/f?x-id=PutObject", true},
		{answer(`"/f"`, s3), "HEAD", "https://s3.eu-central-1.amazonaws.com/bucket/users/7/a/f", true},
		{answer(`"/f"`, s3), "POST", "https://bucket.s3.eu-central-1.amazonaws.com:443/users/7/a/f?uploads=", true},
		{answer(`"/f"`, s3), "DELETE", "https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/f?uploadId=1", true},
		{answer(`"/f"`, s3), "GET", "https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/f", false},
		{answer(`"/f"`, s3), "PUT", "http://bucket.s3.eu-central-1.amazonaws.com/users/7/a/f", false},
		{answer(`"/f"`, s3), "PUT", "https://bucket.s3.eu-central-1.amazonaws.com/users/8/a/f", false},
		{answer(`"/f"`, s3), "PUT", "https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/", false},
		{answer(`"/f"`, s3), "PUT", "https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/../../8/f", false},
		{answer(`"/f"`, s3), "PUT", "https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/%2e%2e/%2e%2e/8/f", false},
		{answer(`"/f"`, s3), "PUT", "https://other.s3.eu-central-1.amazonaws.com/users/7/a/f", false},
		{answer(`"/f"`, s3), "PUT", "https://bucket.s3.eu-central-1.amazonaws.com:8443/users/7/a/f", false},
		{answer(`"/f"`, s3), "PUT", "https://sfc.blob.core.windows.net/users/7/a/f", false},
		{answer(`"/f"`, s3+`,"endPoint":"vpce-1.s3.example"`), "PUT", "https://bucket.vpce-1.s3.example/users/7/a/f", true},
		{answer(`"/f"`, s3+`,"endPoint":"vpce-1.s3.example"`), "PUT",
			"https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/f", false},
		{answer(`"/f"`, `"locationType":"S3","location":"bucket","region":"cn-north-1"`), "PUT",
			"https://bucket.s3.cn-north-1.amazonaws.com.cn/f", true},
		{answer(`"/f"`, `"locationType":"AZURE","location":"c/users/7","path":"c","storageAccount":"acc",`+
			`"endPoint":"blob.core.windows.net"`), "PUT", "https://acc.blob.core.windows.net/c/users/7/f?sig=1", true},
		{answer(`"/f"`, `"locationType":"AZURE","location":"c/users/7","path":"c","storageAccount":"acc",`+
			`"endPoint":"blob.core.windows.net"`), "PUT", "https://acc.blob.core.windows.net/d/users/7/f?sig=1", false},
		{answer(`"/f"`, `"locationType":"GCS","location":"b/users/7"`), "PUT",
			"https://storage.googleapis.com/b/users%2F7%2Ff", true},
		{answer(`"/f"`, `"locationType":"GCS","location":"b/users/7"`), "PUT", "https://b.storage.googleapis.com/users/7/f", true},
		{answer(`"/f"`, `"locationType":"GCS","location":"b/users/7","region":"me-central2"`), "PUT",
			"https://storage.me-central2.rep.googleapis.com/b/users/7/f", true},
		{answer(`"/f"`, `"locationType":"GCS","location":"b/users/7","presignedUrl":"https://storage.googleapis.com/b/x?s=1"`),
			"PUT", "https://storage.googleapis.com/b/x?s=1", true},
		{answer(`"/f"`, `"locationType":"GCS","location":"b/users/7","presignedUrl":"https://storage.googleapis.com/b/x?s=1"`),
			"PUT", "https://storage.googleapis.com/b/users/7/f", false},
		{answer(`"/f"`, `"locationType":"LOCAL_FS","location":"/tmp/x"`), "PUT", "https://127.0.0.1/f", false},
		{answer(`"/f"`, `"locationType":"FTP","location":"b/x"`), "PUT", "https://b/x/f", false},
		{answer(`"/etc/passwd"`, s3), "PUT", "https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/f", false},
		{answer(`"/f","/etc/passwd"`, s3), "PUT", "https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/f", false},
		{strings.Replace(answer(`"/f"`, s3), "UPLOAD", "DOWNLOAD", 1), "PUT",
			"https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/f", false},
		{`{"success":true,"data":{}}`, "PUT", "https://bucket.s3.eu-central-1.amazonaws.com/users/7/a/f", false},
	} {
		settings, err := parseDSN("u:p@acme/DB")
		if err != nil {
			t.Fatal(err)
		}
		u := newUpload(t.Context(), newTransport(settings, nil), "/f")
		r, err := http.NewRequestWithContext(
			t.Context(),
			"POST",
			"https://acme.snowflakecomputing.com:443/queries/v1/query-request",
			nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.learn(respond(r, 200, "application/json", c.answer)); err != nil {
			t.Fatal(err)
		}
		sent := false
		if u.rounds = nil; u.failure() == nil {
			u.rounds = roundTripper(func(r *http.Request) (*http.Response, error) {
				sent = true
				return respond(r, 200, "", ""), nil
			})
		}
		at, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.roundTrip((&http.Request{Method: c.method, URL: at, Header: http.Header{}}).WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if sent != c.ok || (u.failure() == nil) != c.ok {
			t.Errorf("%s %s after %s: sent %t, %v", c.method, c.url, c.answer, sent, u.failure())
		}
		u.close()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
