// Package metadata answers what an account is asked about itself: SHOW, DESCRIBE, and
// the histories of INFORMATION_SCHEMA and SNOWFLAKE.ACCOUNT_USAGE.
package metadata
