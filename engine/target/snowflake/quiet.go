package snowflake

import (
	"context"
	"io"
	"sync"

	sf "github.com/snowflakedb/gosnowflake/v2"
	"github.com/snowflakedb/gosnowflake/v2/sflog"

	// Its init function has to come before gosnowflake's.
	_ "github.com/loadstone-db/loadstone/engine/target/snowflake/internal/noinit"
)

// silent is gosnowflake's logger: it says nothing. Errors come back as errors,
// with what they concern; gosnowflake's log would hold statements and addresses, and a
// client configuration that it finds in the home folder could send it to a file.
type silent struct{}

func (silent) Tracef(string, ...any)                        {}
func (silent) Debugf(string, ...any)                        {}
func (silent) Infof(string, ...any)                         {}
func (silent) Warnf(string, ...any)                         {}
func (silent) Errorf(string, ...any)                        {}
func (silent) Fatalf(string, ...any)                        {}
func (silent) Trace(string)                                 {}
func (silent) Debug(string)                                 {}
func (silent) Info(string)                                  {}
func (silent) Warn(string)                                  {}
func (silent) Error(string)                                 {}
func (silent) Fatal(string)                                 {}
func (s silent) WithField(string, any) sflog.LogEntry       { return s }
func (s silent) WithFields(map[string]any) sflog.LogEntry   { return s }
func (s silent) WithContext(context.Context) sflog.LogEntry { return s }
func (silent) SetLogLevel(string) error                     { return nil }
func (silent) SetLogLevelInt(sflog.Level) error             { return nil }
func (silent) GetLogLevel() string                          { return "OFF" }
func (silent) GetLogLevelInt() sflog.Level                  { return sflog.LevelOff }
func (silent) SetOutput(io.Writer)                          {}

var silence = sync.OnceValue(func() error { return sf.SetLogger(silent{}) })
