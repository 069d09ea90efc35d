// Package dsn reads connection strings of Snowflake and says in words what is wrong with
// them, never repeating a secret. It takes less than gosnowflake does: nothing that names
// files of this machine, proxies, or other hosts than an account's. Private keys are read
// here too, within bounds of what decrypting may cost.
//
// It shows connection strings without their secrets, and puts saved secrets back only
// where they go to the same account, as the same user, by the same sign-in.
package dsn
