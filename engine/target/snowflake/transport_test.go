package snowflake

import (
	"net/http"
	"testing"
)

func TestTransportLetsOutNothingElse(t *testing.T) {
	s, err := parseDSN("u:p@acme/DB")
	if err != nil {
		t.Fatal(err)
	}
	tr := newTransport(s, nil)
	for _, c := range []struct {
		method, url, auth string
		ok                bool
	}{
		{"POST", "https://acme.snowflakecomputing.com:443/session/v1/login-request", "", true},
		{"POST", "https://acme.snowflakecomputing.com:443/queries/v1/query-request", "x", true},
		{"GET", "https://acme.snowflakecomputing.com:443/queries/1/result", "x", true},
		{"POST", "http://acme.snowflakecomputing.com:443/session/v1/login-request", "", false},
		{"POST", "https://acme.snowflakecomputing.com:443/console/login", "", false},
		{"POST", "https://acme.snowflakecomputing.com:8443/session", "", false},
		{"POST", "https://evil.snowflakecomputing.com:443/session", "", false},
		{"GET", "https://sfc-prod.s3.us-west-2.amazonaws.com/results/x?sig=1", "", true},
		{"GET", "https://sfc.blob.core.windows.net/results/x", "", true},
		{"GET", "https://storage.googleapis.com/gcs/x", "", true},
		{"PUT", "https://sfc-prod.s3.us-west-2.amazonaws.com/stages/x", "", false},
		{"GET", "http://sfc-prod.s3.us-west-2.amazonaws.com/results/x", "", false},
		{"GET", "https://sfc-prod.s3.us-west-2.amazonaws.com/results/x", "Snowflake Token", false},
		{"GET", "http://169.254.169.254/latest/meta-data", "", false},
		{"GET", "http://metadata.google.internal/", "", false},
		{"GET", "http://ocsp.digicert.com/x", "", false},
		{"POST", "http://ocsp.snowflakecomputing.com/ocsp_response_cache.json", "", false},
	} {
		r, _ := http.NewRequest(c.method, c.url, nil)
		r.Header.Set("Authorization", c.auth)
		if c.auth == "" {
			r.Header.Del("Authorization")
		}
		if err := tr.allowed(r); (err == nil) != c.ok {
			t.Errorf("%s %s: %v", c.method, c.url, err)
		}
	}
}
