package snowsim

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestThePythonConnector reads every type, in parts of a result too, and stores files as S3, Google Cloud
// and Azure take them. It needs a Python with Snowflake's own connector, which LOADSTONE_SNOWFLAKE_PYTHON names; make test-snowflake-emulator installs one.
func TestThePythonConnector(t *testing.T) {
	python := os.Getenv("LOADSTONE_SNOWFLAKE_PYTHON")
	if python == "" {
		t.Skip("LOADSTONE_SNOWFLAKE_PYTHON names no Python with the connector; make test-snowflake-emulator does")
	}
	for _, cloud := range []string{StagesS3, StagesGCS, StagesAzure} {
		for _, form := range []string{"arrow", "json"} {
			s := start(t, func(o *Options) {
				o.Stages, o.Results, o.plain = cloud, form, nil
				o.InlineBytes, o.ChunkBytes = 4<<10, 16<<10
			})
			authority := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(authority, []byte(s.StageAuthority()), 0o600); err != nil {
				t.Fatal(err)
			}
			content := bytes.Repeat([]byte("0123456789"), 1000)
			host, port, err := net.SplitHostPort(s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			number, err := strconv.Atoi(port)
			if err != nil {
				t.Fatal(err)
			}
			about, err := json.Marshal(map[string]any{"user": DefaultUser, "password": s.opts.Users[0].Password,
				"account": DefaultAccount, "host": host, "port": number, "warehouse": DefaultWarehouse,
				"database": DefaultDatabase, "schema": DefaultSchema, "role": DefaultRole, "file": write(t, content)})
			if err != nil {
				t.Fatal(err)
			}
			c := osexec.CommandContext(t.Context(), python, "testdata/connector.py", string(about))
			c.Env = append(os.Environ(), "REQUESTS_CA_BUNDLE="+authority, "SSL_CERT_FILE="+authority)
			if cloud == StagesAzure {
				c.Env = append(c.Env, "HTTPS_PROXY=http://"+localhostProxy(t))
			}
			out, err := c.CombinedOutput()
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", cloud, form, err, out)
				continue
			}
			text, found, err := s.stages.open(userPrefix(DefaultUser) + "p/file.parquet")
			if err != nil || !found || !bytes.Equal(text, content) {
				t.Errorf("%s, %s: the account reads %d bytes, %t, %v", cloud, form, len(text), found, err)
			}
		}
	}
}

// localhostProxy leads every host below localhost to this machine: not every system resolves such names.
func localhostProxy(t *testing.T) (address string) {
	t.Helper()
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, port, err := net.SplitHostPort(r.Host)
		if r.Method != http.MethodConnect || err != nil || !strings.HasSuffix(host, ".localhost") {
			http.Error(w, "only hosts below localhost", http.StatusForbidden)
			return
		}
		there, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer there.Close()
		w.WriteHeader(http.StatusOK)
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		go func() { _, _ = io.Copy(there, here); _ = there.(*net.TCPConn).CloseWrite() }()
		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(p.Close)
	return p.Listener.Addr().String()
}
