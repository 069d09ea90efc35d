package snowsim

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate"
)

// user is a User with the key parsed.
type user struct {
	User
	key         *rsa.PublicKey
	fingerprint string
	identityKey *rsa.PublicKey
}

func registerUsers(list []User) (map[string]*user, error) {
	out := map[string]*user{}
	for _, u := range list {
		u.Name = strings.ToUpper(u.Name)
		registered := &user{User: u}
		var err error
		var der []byte
		if registered.key, der, err = publicKey(u.PublicKey); err == nil {
			registered.identityKey, _, err = publicKey(u.WorkloadIdentity.PublicKey)
		}
		if err != nil {
			return nil, fmt.Errorf("snowsim: the public key of %s: %w", u.Name, err)
		}
		sum := sha256.Sum256(der)
		registered.fingerprint = "SHA256:" + base64.StdEncoding.EncodeToString(sum[:])
		out[u.Name] = registered
	}
	return out, nil
}

// publicKey reads an RSA key and its DER; empty is none.
func publicKey(text string) (*rsa.PublicKey, []byte, error) {
	if text == "" {
		return nil, nil, nil
	}
	der, err := keyBytes(text)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, nil, err
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return nil, nil, errors.New("it is not RSA")
	}
	return key, der, nil
}

func keyBytes(text string) ([]byte, error) {
	if block, _ := pem.Decode([]byte(text)); block != nil {
		return block.Bytes, nil
	}
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, errors.New("it is neither PEM nor base64")
	}
	return der, nil
}

type loginRequest struct {
	Data struct {
		Account       string         `json:"ACCOUNT_NAME"`
		User          string         `json:"LOGIN_NAME"`
		Password      string         `json:"PASSWORD"`
		Passcode      string         `json:"PASSCODE"`
		DuoMethod     string         `json:"EXT_AUTHN_DUO_METHOD"`
		Authenticator string         `json:"AUTHENTICATOR"`
		Token         string         `json:"TOKEN"`
		Provider      string         `json:"PROVIDER"`
		Parameters    map[string]any `json:"SESSION_PARAMETERS"`
		ClientApp     string         `json:"CLIENT_APP_ID"`
		ClientVersion string         `json:"CLIENT_APP_VERSION"`
	} `json:"data"`
}

// login answers a log-in request.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var req loginRequest
	if err := protocol.Read(r, &req); err != nil {
		protocol.Write(w, protocol.Refusal("391903", "Invalid request: "+err.Error()+"."))
		return
	}
	account, _, _ := strings.Cut(req.Data.Account, ".")
	if !strings.EqualFold(account, s.opts.Account) {
		// An unknown account is refused before the body is checked.
		http.Error(w, "Forbidden", http.StatusForbidden)
		return
	}
	who, problem := s.authenticate(&req)
	if problem != nil {
		protocol.Write(w, *problem)
		return
	}
	if problem := refusedByPolicy(who, r); problem != nil {
		protocol.Write(w, *problem)
		return
	}
	sess, problem := s.openSession(who, &req, r)
	if problem != nil {
		protocol.Write(w, *problem)
		return
	}
	s.counts.logins.Add(1)
	view := sess.view()
	protocol.Write(w, protocol.Success(map[string]any{
		"token": sess.token, "validityInSeconds": int64(s.opts.SessionValidity / time.Second),
		"masterToken": sess.master, "masterValidityInSeconds": int64(s.opts.MasterValidity / time.Second),
		"displayUserName": who.Name, "serverVersion": Version, "firstLogin": false, "remMeToken": nil,
		"remMeValidityInSeconds": 0,
		"healthCheckInterval":    45, "newClientForUpgrade": nil, "sessionId": sess.id,
		"parameters": sess.parameterList(),
		"sessionInfo": map[string]any{"databaseName": orNull(view.Database), "schemaName": orNull(view.Schema),
			"warehouseName": orNull(view.Warehouse), "roleName": view.Role},
	}))
}

func (s *Server) authenticate(req *loginRequest) (*user, *protocol.Envelope) {
	refuse := func(code, message string) (*user, *protocol.Envelope) {
		e := protocol.Refusal(code, message)
		return nil, &e
	}
	d := &req.Data
	switch strings.ToUpper(d.Authenticator) {
	case "", "SNOWFLAKE", "USERNAME_PASSWORD_MFA":
		who := s.users[strings.ToUpper(d.User)]
		known := who
		if known == nil {
			known = &user{} // the same work for names that do not exist
		}
		if subtle.ConstantTimeCompare([]byte(known.Password), []byte(d.Password)) != 1 || who == nil || who.Password == "" {
			return refuse(protocol.CodeWrongPassword, "Incorrect username or password was specified.")
		}
		if who.MFA && d.Passcode == "" && d.DuoMethod != "passcode" {
			return refuse(protocol.CodeMFARequired,
				"Failed to authenticate: MFA with TOTP is required. To authenticate, provide both your password and a current "+
					"TOTP passcode.")
		}
		return who, nil
	case "SNOWFLAKE_JWT":
		who, err := s.checkJWT(d.Token)
		if err != nil {
			s.log.Debug().Err(err).Msg("a key pair was refused")
			return refuse(protocol.CodeInvalidJWT, "JWT token is invalid. ["+idText(s.newQueryID())+"]")
		}
		return who, nil
	case "WORKLOAD_IDENTITY":
		who, err := s.byIdentity(strings.ToUpper(d.Provider), d.Token)
		if err != nil {
			s.log.Debug().Err(err).Msg("an identity was refused")
			return refuse("395090", "Workload identity federation failed: the identity is not accepted. ["+
				idText(s.newQueryID())+"]")
		}
		return who, nil
	case "OAUTH":
		if given, found := s.givenToken(d.Token); found {
			if time.Now().After(given.expires) {
				return refuse(protocol.CodeExpiredOAuth, "OAuth access token expired. ["+idText(s.newQueryID())+"]")
			}
			return given.user, nil
		}
		for _, who := range s.users {
			if valid, found := who.OAuthTokens[d.Token]; found {
				if !valid {
					return refuse(protocol.CodeExpiredOAuth, "OAuth access token expired. ["+idText(s.newQueryID())+"]")
				}
				if d.User != "" && !strings.EqualFold(d.User, who.Name) {
					return refuse("390309",
						"The user you were trying to authenticate as differs from the user tied to the access token.")
				}
				return who, nil
			}
		}
		return refuse(protocol.CodeInvalidOAuth, "Invalid OAuth access token. ["+idText(s.newQueryID())+"]")
	case "PROGRAMMATIC_ACCESS_TOKEN":
		if who := s.users[strings.ToUpper(d.User)]; who != nil && who.Tokens[d.Token] {
			return who, nil
		}
		return refuse(protocol.CodeInvalidToken, "Programmatic access token is invalid.")
	}
	return refuse("390139", "The specified authenticator is not accepted by your Snowflake account configuration.  "+
		"Please contact your local system administrator to get the correct URL to use.")
}

// checkJWT verifies a token as Snowflake does: RS256 with the user's registered
// key, issuer ACCOUNT.USER.FINGERPRINT, at most an hour old.
func (s *Server) checkJWT(token string) (*user, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("not three parts")
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	var claims struct {
		Issuer  string  `json:"iss"`
		Subject string  `json:"sub"`
		Issued  float64 `json:"iat"`
		Expires float64 `json:"exp"`
	}
	for i, into := range []any{&header, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
	}
	if header.Algorithm != "RS256" {
		return nil, fmt.Errorf("algorithm %q", header.Algorithm)
	}
	account, name, found := strings.Cut(claims.Subject, ".")
	who := s.users[name]
	if !found || !strings.EqualFold(account, s.opts.Account) || who == nil || who.key == nil {
		return nil, fmt.Errorf("no key for the subject %q", claims.Subject)
	}
	if claims.Issuer != claims.Subject+"."+who.fingerprint {
		return nil, errors.New("the fingerprint is another key's")
	}
	const slack = 60 // clocks differ
	now := float64(time.Now().Unix())
	if now > claims.Expires+slack || now < claims.Issued-slack || now > claims.Issued+3600+slack {
		return nil, errors.New("expired, or from the future")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(who.key, crypto.SHA256, sum[:], signature); err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	return who, nil
}

// openSession creates a session for an authenticated user.
func (s *Server) openSession(who *user, req *loginRequest, r *http.Request) (*session, *protocol.Envelope) {
	refuse := func(code, format string, args ...any) (*session, *protocol.Envelope) {
		e := protocol.Refusal(code, fmt.Sprintf(format, args...))
		return nil, &e
	}
	q := r.URL.Query()
	role := canonicalName(q.Get("roleName"))
	switch {
	case role == "":
		if role = canonicalName(who.DefaultRole); !s.translator.RoleExists(role) {
			role = "PUBLIC"
		}
	case !s.translator.RoleExists(role):
		return refuse(protocol.CodeNoRole,
			"Role '%s' specified in the connect string does not exist or not authorized. Contact "+
				"your local system administrator, or attempt to login with another role, e.g. PUBLIC.", role)
	}
	restricted := canonicalName(who.TokenRoles[req.Data.Token])
	if restricted == "" || !strings.EqualFold(req.Data.Authenticator, "PROGRAMMATIC_ACCESS_TOKEN") {
		restricted = ""
	} else if q.Get("roleName") == "" {
		role = restricted
	} else if role != restricted {
		return refuse(protocol.CodeNoRole, "Role '%s' specified in the connect string does not exist or not authorized: the "+
			"programmatic access token is restricted to another role.", role)
	}
	// A client can have its warehouse, database and schema validated; gosnowflake does by default.
	validate, _ := req.Data.Parameters["CLIENT_VALIDATE_DEFAULT_PARAMETERS"].(bool)
	sess := &session{server: s, user: who.Name, client: req.Data.ClientApp, role: role, jobs: map[string]*job{},
		parameters: map[string]string{}, defaults: defaultParameters(s.opts.Parameters, who.Parameters)}
	if who.NoSecondaryRoles || restricted != "" {
		sess.parameters[translate.SecondaryRoles] = "NONE"
	}
	house, named := canonicalName(q.Get("warehouse")), q.Get("warehouse") != ""
	if !named {
		house = canonicalName(who.DefaultWarehouse)
	}
	if house != "" && !s.mayUse(sess.view(), house) {
		if validate && named {
			return refuse(protocol.CodeNoObject, "The requested warehouse does not exist or not authorized.")
		}
		house = ""
	}
	sess.warehouse = house
	for name, value := range req.Data.Parameters {
		if name != "CLIENT_VALIDATE_DEFAULT_PARAMETERS" && value != nil {
			sess.parameters[strings.ToUpper(name)] = fmt.Sprint(value)
		}
	}
	database, schema := canonicalName(q.Get("databaseName")), canonicalName(q.Get("schemaName"))
	if database == "" {
		// The user's default is not looked at by the log-in.
		validate = false
		ownDatabase, ownSchema, _ := strings.Cut(who.DefaultNamespace, ".")
		database, schema = canonicalName(ownDatabase), canonicalName(ownSchema)
	}
	if problem := s.setNamespace(r.Context(), sess, database, schema, validate); problem != nil {
		return nil, problem
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	sess.id = s.lastID<<20 | int64(s.salt&0xfffff)
	sess.master, sess.masterExpires = newToken(), time.Now().Add(s.opts.MasterValidity)
	s.sessions[sess.id] = sess
	s.masters[sess.master] = sess
	s.issue(sess)
	return sess, nil
}

// mayUse reports whether there is a warehouse that a session's roles may use.
func (s *Server) mayUse(session *translate.Session, house string) bool {
	_, found := s.account.Get(house)
	return found && s.translator.MayUse(session, house)
}

// issue creates a new token for a session. The caller holds mu.
func (s *Server) issue(sess *session) {
	sess.issued = append(sess.issued, sess.token)
	sess.token, sess.expires = newToken(), time.Now().Add(s.opts.SessionValidity)
	s.tokens[sess.token] = sess
}

func newToken() string {
	var b [48]byte
	_, _ = rand.Read(b[:]) // never fails
	return "ver:1-hint:snowsim-" + base64.StdEncoding.EncodeToString(b[:])
}

// canonicalName is the name of an identifier: upper case unless it is quoted.
func canonicalName(name string) string {
	if len(name) >= 2 && name[0] == '"' && name[len(name)-1] == '"' {
		return strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	}
	return strings.ToUpper(name)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
