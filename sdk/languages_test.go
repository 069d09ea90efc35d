package sdk_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk/abi"
)

// constants are the numbers that every SDK repeats, by their name there.
var constants = map[string]int64{
	"ABI_VERSION": abi.Version, "BATCH_VERSION": abi.BatchVersion, "HEADER_SIZE": abi.HeaderSize,
	"TYPE_NULL": int64(abi.TypeNull), "TYPE_I64": int64(abi.TypeI64), "TYPE_F64": int64(abi.TypeF64),
	"TYPE_TEXT":  int64(abi.TypeText),
	"TYPE_BYTES": int64(abi.TypeBytes), "TYPE_BOOL": int64(abi.TypeBool), "TYPE_TIMESTAMP": int64(abi.TypeTimestamp),
	"TYPE_REF":        int64(abi.TypeRef),
	"STATEMENT_BEGIN": int64(abi.StatementBegin), "STATEMENT_COMMIT": int64(abi.StatementCommit),
	"STATEMENT_ROLLBACK": int64(abi.StatementRollback), "STATEMENT_DELAY": int64(abi.StatementDelay),
	"FILL_ERROR": abi.FillError, "MAX_BATCH_BYTES": abi.MaxBatchBytes, "MAX_DOCUMENT": abi.MaxDocument,
	"LOG_DEBUG": int64(abi.LogDebug), "LOG_INFO": int64(abi.LogInfo), "LOG_WARNING": int64(abi.LogWarning),
	"LOG_ERROR": int64(abi.LogError),
}

// TestConstantsOfOtherLanguages compares what the other SDKs say of the wire
// format with sdk/abi.
func TestConstantsOfOtherLanguages(t *testing.T) {
	for _, c := range []struct{ file, form string }{
		{"c/loadstone.h", `(?m)^#define LS_([A-Z0-9_]+) \(?(-?[0-9A-Fa-fx]+)\)?$`},
		{"assemblyscript/assembly/abi.ts", `(?m)^export const ([A-Z0-9_]+): [a-z0-9]+ = (-?[0-9A-Fa-fx]+);$`},
		{"rust/src/lib.rs", `(?m)^pub const ([A-Z0-9_]+): [a-z0-9]+ = (-?[0-9A-Fa-fx]+);$`},
	} {
		source, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, m := range regexp.MustCompile(c.form).FindAllStringSubmatch(string(source), -1) {
			want, known := constants[m[1]]
			if !known {
				continue
			}
			found[m[1]] = true
			if got, err := strconv.ParseInt(strings.ReplaceAll(m[2], "_", ""), 0, 64); err != nil || got != want {
				t.Errorf("%s: %s is %s, expected %d", c.file, m[1], m[2], want)
			}
		}
		for name := range constants {
			if !found[name] {
				t.Errorf("%s does not define %s", c.file, name)
			}
		}
	}
}
