//go:build nosnowflake

package wiring

import (
	"context"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/plugins/bundled"
)

// standIns are the built-in connections to what stands for a database: none in this build.
var standIns []store.Connection

// isStandIn: there is none in this build.
func isStandIn(string) bool { return false }

// ErrNoSnowflake is what is said wherever a Snowflake target is named.
var ErrNoSnowflake = &engine.Error{Code: engine.CodeUnsupported,
	Message: "This program was built without Snowflake (-tags nosnowflake).",
	Hint:    "use the program as it is released, which has the driver and the table types of Snowflake"}

// absent says why the adapters of Snowflake are not here.
func snowflakeUnavailable(ref string) error {
	name, _, _ := strings.Cut(ref, "@")
	infos, err := bundled.Infos()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.Manifest.Driver == (noSnowflake{}).Name() && (info.Name == name || info.SHA256 == ref) {
			return ErrNoSnowflake
		}
	}
	return nil
}

// CheckAccount asks nobody, and says why.
func CheckAccount(context.Context, AccountCheck) (AccountFindings, error) {
	return AccountFindings{}, ErrNoSnowflake
}

// StandInDSN is a DSN as it is.
func StandInDSN(_ context.Context, dsn secret.Secret, _ func() (string, error), _ func(func())) (secret.Secret, error) {
	return dsn, nil
}

// SnowflakeDriver is one that opens nothing, and says why.
func SnowflakeDriver(*egress.Policy) target.Driver { return noSnowflake{} }

// openSnowflake makes a driver that opens nothing, and says why.
func (s *Services) openSnowflake() target.Driver { return noSnowflake{} }

type noSnowflake struct{}

func (noSnowflake) Name() string { return "snowflake" }

func (noSnowflake) Open(target.Config) (target.Database, error) { return nil, ErrNoSnowflake }

// Redact implements target.SecretRedactor: what was saved by another build is shown to nobody.
func (noSnowflake) Redact(string) (shown string, secrets []string) { return target.Mask, nil }

// RestoreSecrets implements target.SecretRedactor.
func (noSnowflake) RestoreSecrets(_, _ string) (string, error) { return "", ErrNoSnowflake }

// Validate implements target.SecretRedactor.
func (noSnowflake) Validate(string) error { return ErrNoSnowflake }
