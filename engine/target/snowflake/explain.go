package snowflake

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
)

// explain words why there is no session: a sentence and what to do about it.
func (d *database) explain(err error) error {
	var known *engine.Error
	if errors.As(err, &known) {
		return err
	}
	e := &engine.Error{Code: engine.CodeTarget, Cause: err}
	var (
		server *sf.SnowflakeError
		status *statusError
	)
	switch {
	case errors.As(err, &server):
		d.explainServer(e, server)
	case errors.As(err, &status):
		e.Message = fmt.Sprintf("The account %s has no time: it answered HTTP %d.", d.settings.Account, status.code)
		e.Hint = "Try again in a minute; https://status.snowflake.com says whether the region has a problem."
	default:
		d.explainNetwork(e, err)
	}
	return e
}

// skew is how far apart the clocks may be: a key pair's token is good for a minute,
// and Snowflake allows some more.
const skew = 45 * time.Second

// clock says how far this machine's clock is off, "" when it is not.
func (d *database) clock() string {
	ahead := time.Duration(d.transport.ahead.Load()).Round(time.Second)
	switch {
	case ahead > skew:
		return fmt.Sprintf("this machine's clock is %v ahead of the account's", ahead)
	case ahead < -skew:
		return fmt.Sprintf("this machine's clock is %v behind the account's", -ahead)
	}
	return ""
}

func (d *database) explainServer(e *engine.Error, server *sf.SnowflakeError) {
	s, said := d.settings, sentence(server)
	lower := strings.ToLower(said)
	mentions := func(words ...string) bool {
		for _, w := range words {
			if !strings.Contains(lower, w) {
				return false
			}
		}
		return true
	}
	switch {
	case mentions("mfa") || mentions("multi-factor") || mentions("duo security") || mentions("totp"):
		e.Message = fmt.Sprintf("Snowflake demands a second factor (MFA) of the user %s.", s.User)
		e.Hint = "A run cannot answer it for each connection. Sign in with a key pair or a programmatic access token, " +
			"best of a user of its own: ALTER USER … SET TYPE = SERVICE."
	case server.Number == sf.ErrCodeClientConfigFailed:
		e.Message = "gosnowflake, the driver, stops at a configuration file for its logging: " + said
		e.Hint = "Loadstone has no use for it. Remove sf_client_config.json from the home folder and from beside the " +
			"program, and unset SF_CLIENT_CONFIG_FILE, or make the file readable and not writable by others."
	case server.Number == 390144 || server.Number >= 394300 && server.Number <= 394310:
		e.Message = fmt.Sprintf("Snowflake does not accept the key of the user %s: %s", s.User, said)
		e.Hint = fmt.Sprintf("Check that the public key is the user's: DESC USER %s shows its fingerprint in "+
			"RSA_PUBLIC_KEY_FP. An administrator sees the reason with SYSTEM$GET_LOGIN_FAILURE_DETAILS and the id in the "+
			"message.", s.User)
		if off := d.clock(); off != "" {
			e.Message = fmt.Sprintf("Snowflake does not accept the key of the user %s: %s.", s.User, off)
			e.Hint = "A sign-in by key pair is good for a minute. Set the clock, with NTP for example."
		}
	case server.Number == 390100:
		e.Message = fmt.Sprintf("The user %s or the password is wrong.", s.User)
		e.Hint = "Check both, and that the account is the right one; users of single sign-on and of TYPE = SERVICE have no " +
			"password: sign in with a key pair."
	case server.Number == 390101 || mentions("temporarily locked") || mentions("account has been locked"):
		e.Message = fmt.Sprintf("The user %s is locked after too many wrong passwords.", s.User)
		e.Hint = "It is unlocked after 15 minutes, or with ALTER USER … SET MINS_TO_UNLOCK = 0."
	case server.Number == 390102 || mentions("user access disabled") || mentions("disabled"):
		e.Message = fmt.Sprintf("The user %s is disabled.", s.User)
		e.Hint = "An administrator enables it with ALTER USER … SET DISABLED = FALSE."
	case server.Number == 390106 || mentions("password has expired") || mentions("password", "expired"):
		e.Message = fmt.Sprintf("The password of the user %s has expired.", s.User)
		e.Hint = "Set a new one on Snowflake's page, or sign in with a key pair."
	case server.Number == 390189 || mentions("role", "does not exist"):
		e.Message = fmt.Sprintf("The role %s does not exist, or is not granted to the user %s.", s.Role, s.User)
		e.Hint = fmt.Sprintf("GRANT ROLE %s TO USER %s, or leave the role out for the user's default.", s.Role, s.User)
		if s.Authenticator == sf.AuthTypePat {
			e.Hint = "A programmatic access token with ROLE_RESTRICTION signs in with that role alone: name it in the " +
				"connection. " + e.Hint
		}
	case server.Number == 390201 || mentions("requested", "does not exist or not authorized"):
		what, name, grant := "database, schema or warehouse", "", "GRANT USAGE ON DATABASE, SCHEMA and WAREHOUSE to the role"
		for _, k := range []struct{ word, name string }{{"warehouse", s.Warehouse}, {"schema", s.Schema},
			{"database", s.Database}} {
			if mentions(k.word) && k.name != "" {
				what, name, grant = k.word, " "+k.name,
					fmt.Sprintf("GRANT USAGE ON %s %s TO ROLE %s", strings.ToUpper(k.word), k.name, cmp.Or(s.Role, "…"))
				break
			}
		}
		e.Message = fmt.Sprintf("The %s%s does not exist, or the role may not use it.", what, name)
		e.Hint = "Check the name (one in lower case needs double quotes), or grant it: " + grant + "."
	case server.Number == 390422 || mentions("not allowed to access snowflake") || mentions("network policy"):
		e.Message = "A network policy of the account does not let this machine in."
		e.Hint = "Have its address added: " + said + " The policy is the account's or the user's: SHOW PARAMETERS LIKE " +
			"'NETWORK_POLICY' IN USER … names it, DESC NETWORK POLICY … lists its addresses."
	case s.IdentityProvider != "" && server.Number >= 390000 && server.Number < 396000:
		e.Message = fmt.Sprintf("Snowflake does not accept the %s identity of this machine: %s", s.IdentityProvider, said)
		e.Hint = "The user needs WORKLOAD_IDENTITY = (TYPE = …) with the issuer and the subject of this machine: ALTER " +
			"USER … SET WORKLOAD_IDENTITY = (…)."
	case s.ClientID != "" && server.Number >= 390000 && server.Number < 396000:
		e.Message = "Snowflake does not accept the access token that the authorization server gave: " + said
		e.Hint = "The account needs a security integration (TYPE = EXTERNAL_OAUTH) that trusts this issuer, audience and " +
			"client, and a user whom its mapping finds."
	case server.Number == 390318 || server.Number == 390303 || s.Authenticator == sf.AuthTypeOAuth &&
		server.Number >= 390000 && server.Number < 396000:
		e.Message = "Snowflake does not accept the OAuth access token: " + said
		e.Hint = "Access tokens live for minutes. Get a new one; for runs that last longer use a key pair or a " +
			"programmatic access token."
	case s.Authenticator == sf.AuthTypePat && server.Number >= 390000 && server.Number < 396000:
		e.Message = "Snowflake does not accept the programmatic access token: " + said
		e.Hint = "It may have expired or been revoked, or its user has no network policy, which such tokens need. Of a " +
			"token with ROLE_RESTRICTION, role= of the connection has to be that role."
	case server.Number == 261004 || server.Number == 260008 || server.Number == 390400:
		e.Message = fmt.Sprintf("There is no account %s at %s.", s.Account, s.Host)
		e.Hint = "It is the first part of the address of your Snowflake page: https://ACCOUNT.snowflakecomputing.com. " +
			"Accounts with a region are written ACCOUNT.REGION."
	case classOf(server) == engine.ErrClassAuth:
		e.Message = "Snowflake refuses the sign-in: " + said
		e.Hint = "Check account, user and kind of sign-in."
	case classOf(server) == engine.ErrClassResource:
		e.Message = "The warehouse is not available: " + said
		e.Hint = fmt.Sprintf("Resume it with ALTER WAREHOUSE %s RESUME, or name another.", cmp.Or(s.Warehouse, "…"))
	default:
		e.Message = "Snowflake refuses: " + said
		e.Hint = "Check the connection."
	}
}

func (d *database) explainNetwork(e *engine.Error, err error) {
	s := d.settings
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		unknown     x509.UnknownAuthorityError
		hostname    x509.HostnameError
		header      tls.RecordHeaderError
	)
	where := d.transport.account
	switch {
	case errors.As(err, &dns):
		e.Message = fmt.Sprintf("The host %s is not known.", s.Host)
		e.Hint = "Check the account: it is the first part of the address of your Snowflake page. Without access to the " +
			"internet the name cannot be looked up either."
	case errors.As(err, &hostname):
		e.Message = fmt.Sprintf("The certificate of %s is for another host.", where)
		e.Hint = "The account's name may be misspelled; an underscore in it is written as a hyphen."
	case errors.As(err, &certificate), errors.As(err, &unknown):
		e.Message = fmt.Sprintf("The certificate of %s cannot be trusted.", where)
		e.Hint = "A proxy that reads TLS needs its authority among those of this machine (SSL_CERT_FILE)."
	case errors.As(err, &header), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Message = fmt.Sprintf("%s does not speak TLS.", where)
		e.Hint = "Check host and port; Snowflake's is 443."
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = fmt.Sprintf("Nothing accepts connections at %s.", where)
		e.Hint = "Check account, host and port."
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		e.Message = fmt.Sprintf("%s did not answer in time.", where)
		e.Hint = "Check the account and that this machine may reach it on port " + fmt.Sprint(s.Port) + "."
	case errors.Is(err, context.Canceled):
		e.Message = "Connecting was cancelled."
	case lost(err):
		e.Message = fmt.Sprintf("%s closed the connection while it was being set up.", where)
		e.Hint = "Check account, host and port."
	default:
		e.Message = fmt.Sprintf("%s is not Snowflake: its answer cannot be read.", where)
		e.Hint = "Check account, host and port."
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
