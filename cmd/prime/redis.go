package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redisFlags say which Redis, and which part of it.
type redisFlags struct {
	Redis        string `env:"PRIME_REDIS_URL" placeholder:"URL" help:"Redis to use: redis://, rediss:// (TLS), unix://, redis+cluster:// or redis+sentinel:// (rediss+…:// with TLS)."`
	Namespace    string `env:"PRIME_NAMESPACE" help:"What the application's keys begin with."`
	CACert       string `name:"cacert" placeholder:"FILE" help:"PEM file with the certificates that vouch for the server, instead of the system's."`
	PasswordFile string `placeholder:"FILE" help:"File with Redis's password, instead of the URL's."`
}

// redisHelp explains the URLs.
const redisHelp = `Redis is named by a URL as go-redis reads it:

    redis://USER:PASSWORD@HOST:6379/DB
    unix://USER:PASSWORD@/run/redis.sock?db=DB
    redis+cluster://USER:PASSWORD@HOST:6379?addr=HOST2:6379
    redis+sentinel://USER:PASSWORD@HOST:26379/DB?master_name=NAME&addr=HOST2:26379

User and password of redis+sentinel are the Sentinels'; those of Redis are
the parameters username and password. Other parameters set options of the
client, as dial_timeout=1s. A password on the command line can be read by
everybody on the machine: use PRIME_REDIS_URL or --password-file.`

// open returns a client, which the caller closes. It does not connect. Its errors name the flag and repeat no password.
func (f *redisFlags) open() (redis.UniversalClient, error) {
	if f.Redis == "" {
		return nil, errors.New("--redis: must be set, or PRIME_REDIS_URL: say which Redis the locks are in, as in redis://localhost:6379")
	}
	e, err := parseEndpoint(f.Redis)
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	if err := errors.Join(f.trust(e), f.authenticate(e)); err != nil {
		return nil, err
	}
	return e.open(), nil
}

// trust has the server's certificate checked against the file's.
func (f *redisFlags) trust(e *endpoint) error {
	if f.CACert == "" {
		return nil
	}
	if *e.tls == nil {
		return errors.New("--cacert: needs a URL that begins with rediss")
	}
	pem, err := os.ReadFile(f.CACert)
	if err != nil {
		return fmt.Errorf("--cacert: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("--cacert: %s holds no certificate", f.CACert)
	}
	(*e.tls).RootCAs = pool
	return nil
}

// authenticate takes the password from the file: its first line.
func (f *redisFlags) authenticate(e *endpoint) error {
	if f.PasswordFile == "" {
		return nil
	}
	text, err := os.ReadFile(f.PasswordFile)
	if err != nil {
		return fmt.Errorf("--password-file: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return fmt.Errorf("--password-file: the first line of %s is empty", f.PasswordFile)
	}
	*e.password = line
	return nil
}

// endpoint is what a URL says, and where in the client's options the rest has its place.
type endpoint struct {
	open     func() redis.UniversalClient
	password *string
	tls      **tls.Config // nil without TLS
}

// parseEndpoint reads a URL. What stands behind the plus of its scheme says what the addresses are those of.
func parseEndpoint(rawURL string) (*endpoint, error) {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	base, kind, _ := strings.Cut(strings.ToLower(scheme), "+")
	plain := base + "://" + rest
	var e *endpoint
	var err error
	switch kind {
	case "":
		var o *redis.Options
		if o, err = redis.ParseURL(plain); err == nil {
			e = &endpoint{func() redis.UniversalClient { return redis.NewClient(o) }, &o.Password, &o.TLSConfig}
		}
	case "cluster":
		var o *redis.ClusterOptions
		if o, err = redis.ParseClusterURL(plain); err == nil {
			e = &endpoint{func() redis.UniversalClient { return redis.NewClusterClient(o) }, &o.Password, &o.TLSConfig}
		}
	case "sentinel":
		return parseSentinels(plain)
	default:
		err = fmt.Errorf("nothing is known of %s", kind)
	}
	return e, notAURL(err)
}

func parseSentinels(plain string) (*endpoint, error) {
	o, err := redis.ParseFailoverURL(plain)
	switch {
	case err != nil:
		return nil, notAURL(err)
	case o.MasterName == "":
		return nil, errors.New("the parameter master_name says which of the Sentinels' masters is meant, and is missing")
	}
	return &endpoint{func() redis.UniversalClient { return redis.NewFailoverClient(o) }, &o.Password, &o.TLSConfig}, nil
}

// notAURL explains what is wrong with a URL. What the url package has to say may repeat a part of the password.
func notAURL(err error) error {
	var urlErr *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &urlErr):
		err = errors.New("special characters of a password are written as %XX")
	}
	return fmt.Errorf("not a URL of Redis, as in redis://user:password@host:6379/0: %w", err)
}
