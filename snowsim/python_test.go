package snowsim

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestThePythonConnector reads every type, in parts of a result too, and stores files as S3 and Google Cloud take them. It needs a Python
// with Snowflake's own connector, which LOADSTONE_SNOWFLAKE_PYTHON names; make test-snowflake-emulator installs one.
func TestThePythonConnector(t *testing.T) {
	python := os.Getenv("LOADSTONE_SNOWFLAKE_PYTHON")
	if python == "" {
		t.Skip("LOADSTONE_SNOWFLAKE_PYTHON names no Python with the connector; make test-snowflake-emulator does")
	}
	// The connector (5.2) builds no address of Azure's from the stand-in's; why is not known.
	for _, cloud := range []string{StagesS3, StagesGCS} {
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
