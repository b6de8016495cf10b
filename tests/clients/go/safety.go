package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	vault "github.com/hashicorp/vault/api"
)

// audited runs an action while a file is an audit device, and gives the lines of the file.
func (t *target) audited(name string, action func() error) (string, error) {
	folder, err := os.MkdirTemp("", "audit")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "audit.log")
	options := map[string]string{"file_path": file}
	if err := t.Sys().EnableAuditWithOptions(name, &vault.EnableAuditOptions{Type: "file", Options: options}); err != nil {
		return "", err
	}
	err = errors.Join(action(), t.Sys().DisableAudit(name))
	lines, readError := os.ReadFile(file)
	return string(lines), errors.Join(err, readError)
}

func enableAudit(t *target) error {
	_, err := t.audited("kept", func() error {
		listed, err := t.Sys().ListAudit()
		if err != nil {
			return err
		}
		device := listed["kept/"]
		if device == nil {
			return errors.New("the device is not listed")
		}
		return errors.Join(equal("type", device.Type, "file"), equal("path", device.Path, "kept/"))
	})
	if err != nil {
		return err
	}
	listed, err := t.Sys().ListAudit()
	if err != nil {
		return err
	}
	return equal("listed", listed["kept/"] == nil, true)
}

func hashForAudit(t *target) error {
	var hash string
	lines, err := t.audited("hashes", func() error {
		_, err := t.Auth().Token().LookupSelf()
		if err != nil {
			return err
		}
		hash, err = t.Sys().AuditHash("hashes", t.Token())
		return err
	})
	if err != nil {
		return err
	}
	if err := equal("hash in an entry", strings.Contains(lines, hash), true); err != nil {
		return err
	}
	_, err = t.Sys().AuditHash("absent", "x")
	return refused(err, http.StatusBadRequest)
}

func auditHeader(t *target) error {
	path := "sys/config/auditing/request-headers/"
	by, err := client(t.url, t.Token())
	if err != nil {
		return err
	}
	by.AddHeader("X-Trace", "seen-in-the-log")
	if err := t.write(path+"X-Trace", fields{"hmac": false}); err != nil {
		return err
	}
	defer t.Logical().Delete(path + "X-Trace")
	lines, err := t.audited("headers", func() error {
		_, err := by.Auth().Token().LookupSelf()
		return err
	})
	if err != nil {
		return err
	}
	read, err := t.Logical().Read(path + "X-Trace")
	if err != nil {
		return err
	}
	_, known := read.Data["X-Trace"].(map[string]any)
	_, err = t.Logical().Write(path+"X-Vault-Token", fields{"hmac": true})
	return errors.Join(
		equal("known", known, true),
		equal("in an entry", strings.Contains(lines, `"x-trace":["seen-in-the-log"]`), true),
		refused(err, http.StatusBadRequest),
	)
}

func limitRate(t *target) error {
	path := "sys/quotas/rate-limit/limited"
	if err := t.engineAt("limited"); err != nil {
		return err
	}
	if err := t.write(path, fields{"path": "limited", "rate": 100, "interval": "1m"}); err != nil {
		return err
	}
	read, err := t.Logical().Read(path)
	if err != nil {
		return err
	}
	if err := numbers(read.Data, map[string]int64{"interval": 60, "block_interval": 0}); err != nil {
		return err
	}
	listed, err := t.Logical().List("sys/quotas/rate-limit")
	if err != nil {
		return err
	}
	if err := equal("listed", len(listed.Data["keys"].([]any)), 1); err != nil {
		return err
	}
	if _, err := t.Logical().Delete(path); err != nil {
		return err
	}
	return nothing(t.Logical().Read(path))
}

func exceedRate(t *target) error {
	if err := t.engineAt("slow"); err != nil {
		return err
	}
	path := "sys/quotas/rate-limit/slow"
	if err := t.write(path, fields{"path": "slow", "rate": 1, "interval": "1h"}); err != nil {
		return err
	}
	defer t.Logical().Delete(path)
	if _, err := t.Logical().Read("slow/config"); err != nil {
		return err
	}
	_, err := t.Logical().Read("slow/config")
	return refused(err, http.StatusTooManyRequests)
}

func tellRate(t *target) error {
	if err := t.engineAt("told"); err != nil {
		return err
	}
	config, path := "sys/quotas/config", "sys/quotas/rate-limit/told"
	if err := t.write(config, fields{"enable_rate_limit_response_headers": true}); err != nil {
		return err
	}
	defer t.write(config, fields{"enable_rate_limit_response_headers": false})
	if err := t.write(path, fields{"path": "told", "rate": 2, "interval": "1h"}); err != nil {
		return err
	}
	defer t.Logical().Delete(path)
	var problems []error
	for _, want := range []string{"2 1", "2 0", "2 0"} {
		answer, _ := t.Logical().ReadRaw("told/config")
		if answer == nil {
			return errors.New("no answer")
		}
		answer.Body.Close()
		told := answer.Header
		got := told.Get("X-RateLimit-Limit") + " " + told.Get("X-RateLimit-Remaining")
		seconds, err := strconv.Atoi(told.Get("X-RateLimit-Reset"))
		problems = append(problems, err, equal("headers", got, want), equal("in an hour", seconds > 1700 && seconds <= 3600, true))
	}
	return errors.Join(problems...)
}

func limitLeases(t *target) error {
	path := "sys/quotas/lease-count/counted"
	if err := t.engineAt("counted"); err != nil {
		return err
	}
	if err := t.write(path, fields{"path": "counted/", "max_leases": 100}); err != nil {
		return err
	}
	read, err := t.Logical().Read(path)
	if err != nil {
		return err
	}
	if err := errors.Join(
		numbers(read.Data, map[string]int64{"max_leases": 100}),
		equal("path", read.Data["path"], any("counted/")),
		equal("type", read.Data["type"], any("lease-count")),
	); err != nil {
		return err
	}
	listed, err := t.Logical().List("sys/quotas/lease-count")
	if err != nil {
		return err
	}
	if err := equal("listed", len(listed.Data["keys"].([]any)), 1); err != nil {
		return err
	}
	if _, err := t.Logical().Delete(path); err != nil {
		return err
	}
	return nothing(t.Logical().Read(path))
}

func exceedLeases(t *target) error {
	if err := t.engineAt("crowded"); err != nil {
		return err
	}
	path := "sys/quotas/lease-count/crowded"
	if err := t.write(path, fields{"path": "crowded", "role": "app", "max_leases": 1}); err != nil {
		return err
	}
	defer t.Logical().Delete(path)
	if _, err := t.issue("crowded/creds/app"); err != nil {
		return err
	}
	_, err := t.issue("crowded/creds/app")
	return refused(err, http.StatusTooManyRequests)
}

func rotateKey(t *target) error {
	before, err := t.Sys().KeyStatus()
	if err != nil {
		return err
	}
	if err := t.Sys().Rotate(); err != nil {
		return err
	}
	after, err := t.Sys().KeyStatus()
	if err != nil {
		return err
	}
	return errors.Join(
		equal("term", after.Term, before.Term+1),
		equal("has a time", after.InstallTime.IsZero(), false),
	)
}
