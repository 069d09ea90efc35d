package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
)

// Fingerprint names this machine as a load generator: its processors and how many
// of them this process may use, its memory to the gigabyte, its system, and the id
// that the system gave itself, hashed. What is measured on another says nothing here.
var Fingerprint = sync.OnceValue(func() string {
	e := Environment("")
	id, _ := os.ReadFile("/etc/machine-id") // a container may have none
	h := sha256.New()
	fmt.Fprintf(h, "%s/%s\n%s\n%d of %d\n%d GB\n%s\n", e.OS, e.Arch, e.CPUModel, Processors(), e.CPUs,
		(e.MemoryBytes+1<<29)>>30, strings.TrimSpace(string(id)))
	return hex.EncodeToString(h.Sum(nil)[:8])
})
