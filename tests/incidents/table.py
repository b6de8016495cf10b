"""Published incidents of similar services and of their dependencies, with the tests that try each one here.

`NOT_CONCERNED` says why an incident cannot happen here. Weaknesses of our own dependencies are in `advisories.py`.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen


@frozen
class Incident:
    """`ids`: of its advisories. `story`: what went wrong. `tests`: below `tests`, each as `file::function`."""

    ids: tuple[str, ...]
    story: str
    tests: tuple[str, ...]


@frozen
class NotConcerned:
    """An incident that cannot happen here, and the reason. If the reason no longer holds, it needs tests."""

    ids: tuple[str, ...]
    story: str
    reason: str


def here(file: str, *names: str) -> tuple[str, ...]:
    """Tests of one file of this folder."""
    return below("incidents", file, *names)


def below(folder: str, file: str, *names: str) -> tuple[str, ...]:
    """Tests of one file."""
    return tuple(f"{folder}/test_{file}.py::test_{name}" for name in names)


INCIDENTS: Final = (
    Incident(
        ("Vault CVE-2026-3605", "HCSEC-2026-05"),
        "`..` behind a path that a glob grants led to what was denied.",
        (
            *here("requests", "no_spelling_of_a_path_leaves_what_a_glob_grants"),
            *below("wire", "requests", "paths_with_two_readings_are_refused_before_policy"),
        ),
    ),
    Incident(
        ("OpenBao GHSA-xp3c-3jw3-4vcr",),
        "A list passed a rule that denied it.",
        (
            *here("requests", "a_list_that_is_denied_is_denied_in_every_form"),
            *below("core/policies", "matching", "a_list_is_decided_by_exact_rules_and_with_the_slash_first"),
        ),
    ),
    Incident(
        ("Vault CVE-2025-5999", "OpenBao CVE-2025-54996", "OpenBao CVE-2025-64761", "Vault CVE-2024-9180"),
        "Another spelling of `root` passed the checks that refuse it, and became it afterwards.",
        here("tokens", "no_spelling_of_root_makes_a_root_token"),
    ),
    Incident(
        ("SPIRE 1.14.6",),
        "What may be used once was looked up and deleted in two steps, and good for all who asked in between.",
        (
            *here("once", "what_may_be_used_once_is_used_once_however_many_nodes_are_asked"),
            *below("core/tokens", "authenticate", "the_last_use_is_granted_once_however_many_ask"),
            *below("core", "wrapping", "of_many_who_unwrap_at_the_same_time_one_gets_the_answer"),
        ),
    ),
    Incident(
        ("OpenBao CVE-2026-46405",),
        "A login was refused, and its token was made all the same.",
        (
            *here("tokens", "no_token_is_made_beside_a_refusal"),
            *below("simulation", "audit", "what_a_response_gives_that_is_not_on_record_is_taken_back"),
        ),
    ),
    Incident(
        ("Vault CVE-2024-8365", "OpenBao CVE-2026-46358"),
        "Tokens stood clear in audit entries.",
        (
            *here("secrets", "nothing_that_is_answered_is_told_on"),
            *below("core/system", "audited_headers", "headers_that_may_hold_a_token_are_never_on_record"),
            *below("core/system", "mounts", "no_mount_opens_a_secret_to_audit_devices"),
            *below("servers/audit", "secrets", "no_kind_of_request_writes_a_secret"),
        ),
    ),
    Incident(
        ("Vault CVE-2025-4166", "HCSEC-2025-09"),
        "Secrets in a body that could not be parsed were repeated in errors and logs.",
        here("secrets", "no_body_that_cannot_be_understood_is_repeated_anywhere"),
    ),
    Incident(
        ("OpenBao CVE-2025-62513", "OpenBao CVE-2025-62705"),
        "Parts of answers that were no texts got into audit entries as they were.",
        (
            *here("secrets", "nothing_that_is_answered_is_told_on"),
            *below("core/dispatch", "audit_entry", "no_secret_gets_into_an_entry"),
        ),
    ),
    Incident(
        ("Vault CVE-2025-6000", "OpenBao CVE-2025-54997"),
        "An audit file was a program, written by those who may enable audit devices.",
        (
            *below("core/system", "audit", "a_device_that_makes_no_sense_is_refused"),
            *below("core/system", "audit", "no_request_makes_an_audit_file_outside_of_the_folder"),
            *below("core/dispatch", "audit_entry", "names_that_requests_make_up_are_in_no_entry"),
            *below("servers/audit", "devices", "a_file_that_is_no_audit_log_is_left_alone"),
            *below("servers/audit", "files", "no_segment_of_a_path_below_the_folder_may_be_a_link"),
        ),
    ),
    Incident(
        ("Vault CVE-2025-6203", "OpenBao CVE-2025-59043"),
        "Small bodies of JSON were a lot of work.",
        (
            *below("properties", "hostile_inputs", "no_input_costs_much_more_than_an_ordinary_one"),
            *below("core/messages", "request", "a_body_that_is_too_deep_or_has_too_many_values_is_too_complex"),
        ),
    ),
    Incident(
        ("Vault CVE-2025-12044",),
        "Bodies were parsed before anything limited how many came.",
        (
            *below("core/dispatch", "order_of_checks", "of_two_that_fail_the_first_answers"),
            *below("core/quotas", "rate_limit", "what_is_malformed_counts_too"),
            *below("servers", "order_of_checks", "the_earlier_step_answers"),
        ),
    ),
    Incident(
        ("Vault CVE-2026-5807", "Vault CVE-2025-4656", "OpenBao CVE-2025-52894"),
        "Whoever asked could begin and cancel the change of the master key, and the making of a root token.",
        here("requests", "nobody_asks_for_the_master_key_or_a_root_token_by_a_request"),
    ),
    Incident(
        ("Vault CVE-2026-5006", "OpenBao GHSA-59w7-v8rr-pr4p"),
        "Names with `/`, `*` and `+` got into the paths of policies by way of templates.",
        here("requests", "no_text_of_a_caller_becomes_a_part_of_a_policy"),
    ),
    Incident(
        ("Vault CVE-2025-11621", "OpenBao CVE-2025-59048"),
        "What was remembered of one account was used for another with the same name in it.",
        (
            *here("machines", "what_one_tenant_says_of_a_machine_is_not_said_of_its_twin_in_another"),
            *here("machines", "twins_in_two_tenants_are_both_admitted_until_one_changes"),
            *below("properties", "never_again", "what_one_mount_verified_is_not_verified_for_another"),
        ),
    ),
    Incident(
        ("Vault CVE-2025-3879",),
        "The token of one machine was good for the place of any other that the caller named.",
        (
            *here("machines", "the_name_of_another_machine_is_refused_and_never_told_on"),
            *here("machines", "a_machine_does_not_get_the_place_of_the_one_that_it_names"),
            *below("properties", "never_again", "what_the_request_says_of_the_machine_is_tied_to_the_token"),
            *below("properties", "never_again", "metadata_holds_nothing_that_only_the_request_said"),
        ),
    ),
    Incident(
        ("Vault secrets-azure, 2026: self-target",),
        "A role lent the application that the engine itself works with.",
        (
            *below("properties", "self_targets", "nothing_is_lent_of_what_the_service_proves_itself_with"),
            *below("core/rotation", "identities", "an_application_of_another_mount_is_no_target"),
        ),
    ),
    Incident(
        ("Vault CVE-2026-4525",),
        "The client's `Authorization` was passed on to what stood behind a mount.",
        here("requests", "no_header_of_a_client_reaches_the_provider"),
    ),
    Incident(
        ("OpenBao GHSA-rh46-vc3j-w2w3",),
        "What the core asks of its own backends could be asked for from outside.",
        (
            *here("requests", "no_verb_asks_for_work_that_only_the_service_gives_itself"),
            *below("wire", "requests", "other_verbs_are_not_offered"),
        ),
    ),
    Incident(
        ("OpenBao CVE-2026-40264", "OpenBao CVE-2026-45808", "OpenBao GHSA-c36x-h252-g9x2"),
        "An accessor or a lease of others was enough to renew or end it.",
        (
            *below(
                "core/system",
                "leases",
                "by_the_policy_that_all_have_only_the_token_of_a_lease_and_its_ancestors_renew_it",
            ),
            *below("core/system", "capabilities", "not_everybody_may_ask_about_others"),
            *below("core/leases", "scope", "rights_on_a_path_do_not_reach_the_leases_of_a_mount_that_was_moved_away"),
        ),
    ),
    Incident(
        ("OpenBao GHSA-vv66-6rp4-wr4f", "Vault CVE-2020-7220"),
        "A deletion that was interrupted lost the leases, and what they stood for lived on.",
        (
            *here("interrupted_end", "a_mount_whose_end_was_cut_off_leaves_nothing_at_the_provider"),
            *below("core/leases", "retirement", "a_crash_anywhere_only_delays_the_end_of_a_mount"),
        ),
    ),
    Incident(
        ("h11 CVE-2025-43859", "aiohttp: extensions of chunks"),
        "Ends of chunks were not looked at, so that two readers saw different requests.",
        (
            *below("wire", "raw_http", "the_trio_server_answers_as_the_table_says"),
            *below("wire", "raw_http", "the_aiohttp_server_answers_as_the_table_says"),
            *below("servers", "reader", "what_is_accepted_in_chunks_h11_accepts_too"),
        ),
    ),
    Incident(
        ("OpenTelemetry azure_auth GHSA-pjv4-3c63-699f",),
        "A server compared what clients sent with a token of its own, and verified no signature.",
        (
            *below("core/auth_method", "login", "a_login_under_a_key_that_nobody_publishes_is_refused"),
            *below("properties", "never_again", "no_token_is_signed_by_nothing"),
            *below("properties", "never_again", "a_key_in_the_token_itself_is_not_trusted"),
        ),
    ),
    Incident(
        ("PyJWT CVE-2026-48525", "PyJWT CVE-2026-48526", "PyJWT CVE-2026-48522"),
        "Base64 without bound was decoded, public keys were secrets to sign with, keys were fetched from anywhere.",
        (
            *below("core/auth_method", "verification", "length_is_limited_before_anything_else"),
            *below("core/auth_method", "jws", "hmac_keyed_with_the_public_key_is_refused"),
            *below("core/provider", "discovery", "keys_come_from_the_login_host_only"),
            *below("core/provider", "discovery", "keys_that_cannot_be_used_are_left_out"),
        ),
    ),
    Incident(
        ("OpenBao CVE-2025-52893",),
        "Errors about a field of the wrong type repeated its value.",
        here("secrets", "no_body_that_cannot_be_understood_is_repeated_anywhere"),
    ),
    Incident(
        ("Vault CVE-2026-92735", "Vault CVE-2026-93333", "Vault CVE-2026-93335"),
        "Another spelling of a path or a parameter passed a rule that denied it.",
        (
            *here("requests", "no_spelling_of_a_path_leaves_what_a_glob_grants"),
            *here("requests", "a_list_that_is_denied_is_denied_in_every_form"),
            *below("core/policies", "parameters", "no_spelling_of_a_value_or_a_name_evades_a_denial"),
        ),
    ),
    Incident(
        ("Vault CVE-2026-105816", "Vault CVE-2026-105820", "OpenBao CVE-2026-115365", "OpenBao CVE-2026-115366"),
        "A policy name with a slash reached another policy, or another path, than the one that was checked.",
        (
            *below("core/policies", "store", "root_in_any_spelling_is_root"),
            *below("wire", "requests", "paths_with_two_readings_are_refused_before_policy"),
        ),
    ),
    Incident(
        ("Entra CVE-2025-55241",),
        "Tokens that act for a person passed as those of a workload.",
        (
            *below("core/auth_method", "claims", "the_token_of_a_person_or_of_an_app_that_acts_for_one"),
            *below("core/auth_method", "login", "a_person_logs_in_only_where_the_role_says_so"),
        ),
    ),
    Incident(
        ("Vault CVE-2024-5798",),
        "A JWT was accepted although its audience was not the one that the role asks for.",
        (
            *below("properties", "never_again", "audience_issuer_and_tenant_are_all_checked"),
            *below("properties", "never_again", "a_slash_at_the_end_of_the_audience_is_part_of_it"),
        ),
    ),
    Incident(
        (
            *("Vault CVE-2020-35177", "Vault CVE-2023-3462", "Vault CVE-2025-6010", "Vault CVE-2025-6011"),
            "OpenBao CVE-2025-54999",
        ),
        "The text of a refusal, or the time until it came, showed strangers which users exist.",
        (
            *below("properties", "trust_before_proof", "a_token_that_is_not_verified_leaves_the_same_under_every_role"),
            *below(
                "properties",
                "trust_before_proof",
                "a_verified_token_that_is_not_accepted_leaves_the_same_under_every_role",
            ),
        ),
    ),
    Incident(
        ("Vault CVE-2025-6004", "OpenBao CVE-2025-54998"),
        "Another spelling of a name was not counted as an attempt for the same name, so that no lock-out came.",
        (
            *below("core/quotas", "failed_logins", "a_login_that_is_refused_for_its_form_counts"),
            *below(
                "core/quotas", "failed_logins", "a_verified_token_that_is_not_accepted_counts_whichever_role_it_names"
            ),
        ),
    ),
    Incident(
        ("Vault CVE-2023-6337",),
        "Large requests of strangers filled the memory.",
        (
            *below("servers", "http", "a_body_that_is_too_large_is_not_asked_for"),
            *below("servers", "reader", "the_memory_is_bounded"),
        ),
    ),
    Incident(
        ("Vault CVE-2023-5954",),
        "Each check of a policy kept memory that was never freed.",
        (
            *below("core/policies", "store", "access_lists_of_long_policies_are_forgotten_before_there_are_many"),
            *below("core", "caches", "every_cache_of_a_service_is_bounded"),
        ),
    ),
    Incident(
        ("Vault CVE-2021-32923",),
        "A renewal within the last second of a lease or a token made it last forever.",
        (
            *below("core/system", "leases", "a_renewal_ends_with_the_maximum_of_the_role"),
            *below("core/system", "leases", "a_lease_that_is_over_cannot_be_renewed"),
            *below("core/system", "leases", "no_renewal_outlives_the_secret_at_the_provider"),
        ),
    ),
    Incident(
        ("Vault CVE-2020-25816",),
        "A lease outlived the batch token that had requested it.",
        (
            *below("core/leases", "expiry", "leases_end_with_a_token_that_expires"),
            *below("core/tokens", "batch", "a_batch_token_dies_with_its_parent"),
        ),
    ),
    Incident(
        ("Vault CVE-2020-25594", "Vault CVE-2021-3024"),
        "Answers to strangers named mounts, or addresses of the inner network.",
        (
            *below("core/system", "internal", "an_unmounted_path_is_denied_alike"),
            *below("core/system", "health", "strangers_learn_codes_but_no_names"),
            *below("core/dispatch", "dispatch", "without_a_token_no_answer_reveals_the_methods_of_a_path"),
        ),
    ),
    Incident(
        ("Vault CVE-2024-0831",),
        "An audit device without keyed hashes made all other devices record secrets in clear.",
        below(
            "core/system", "audit", "an_option_of_existing_services_that_does_nothing_here_is_refused_with_what_to_do"
        ),
    ),
    Incident(
        ("Vault CVE-2024-2877",),
        "A node that passed a request on wrote its headers, tokens among them, into the audit log.",
        below("core/system", "audited_headers", "headers_that_may_hold_a_token_are_never_on_record"),
    ),
    Incident(
        ("Vault CVE-2020-13223",),
        "The log had the variables that name a proxy, with the proxy's password.",
        (
            *below("servers", "proxies", "credentials_of_a_proxy_are_never_printed"),
            *below("servers", "proxies", "a_proxy_that_cannot_be_used_is_an_error_that_does_not_show_it"),
        ),
    ),
    Incident(
        ("Vault CVE-2021-38553",),
        "The file of the store could be read by every user of the machine.",
        (
            *below("hosts", "stores", "the_file_is_for_its_owner_only"),
            *below("servers", "backup", "a_copy_is_for_its_owner_only_and_overwrites_nothing"),
        ),
    ),
    Incident(
        ("Vault CVE-2021-38554",),
        "The page kept what one user had seen, and showed it to the next one in the same browser.",
        below("ui", "ui", "a_wrong_token_is_told_and_nothing_is_kept_of_a_right_one"),
    ),
    Incident(
        ("Vault CVE-2023-2121", "OpenBao CVE-2026-33758"),
        "Text of others was shown on the page as HTML.",
        (
            *below("ui", "ui", "every_status_has_all_security_headers"),
            *below("ui", "ui", "nothing_is_inline_and_nothing_comes_from_elsewhere"),
        ),
    ),
    Incident(
        ("Vault CVE-2021-27400",),
        "The certificate of a database was not verified.",
        (
            *below("servers", "safety", "a_database_beyond_this_machine_needs_a_verified_certificate"),
            *below("hosts", "hosts", "the_certificate_of_the_provider_is_checked"),
        ),
    ),
    Incident(
        ("Vault CVE-2024-6468",),
        "One connection from an address that was not allowed ended the listener.",
        (
            *below("servers", "http", "connections_are_bounded"),
            *below("servers", "http", "forwarded_addresses_are_believed_from_trusted_proxies"),
        ),
    ),
    Incident(
        ("Vault Secrets Operator HCSEC-2026-28", "consul-template HCSEC-2026-12"),
        "Files outside the folder of secrets were read, by a path in a declaration or by a symbolic link.",
        (
            *below("servers", "folder_secrets", "nothing_else_is_read"),
            *below("servers", "folder_secrets", "a_file_of_a_folder_is_no_link_to_elsewhere"),
        ),
    ),
)

NOT_CONCERNED: Final = (
    NotConcerned(
        ("Vault CVE-2023-5077",),
        "A role that was written again lost the conditions of its bindings at the provider.",
        "Role assignments are created and deleted by their ids; none is rewritten",
    ),
    NotConcerned(
        (
            *("Vault CVE-2022-41316", "Vault CVE-2024-2048", "Vault CVE-2024-2660", "Vault CVE-2025-6037"),
            "Vault CVE-2020-35453",
        ),
        "Client certificates that were revoked or not of an authority passed; endpoint policies did not take effect.",
        "Clients do not log in with certificates, and there are no Sentinel policies",
    ),
    NotConcerned(
        (
            *("Vault CVE-2021-41802", "Vault CVE-2021-43998", "Vault CVE-2022-40186", "Vault CVE-2020-10660"),
            *("Vault CVE-2022-30689", "Vault CVE-2025-6013", "Vault CVE-2025-6014", "Vault CVE-2025-6015"),
            *("OpenBao CVE-2025-55000", "OpenBao CVE-2025-55001", "OpenBao CVE-2025-55003"),
        ),
        "Entities and aliases were confused with each other, and second factors were accepted twice.",
        "There are no entities, aliases, templated policies and second factors: a token has the policies of one role",
    ),
    NotConcerned(
        (
            *("Vault CVE-2020-10661", "Vault CVE-2023-3774", "Vault CVE-2023-3775", "Vault CVE-2020-12757"),
            "OpenBao GHSA-mwr2-wmgp-crj6",
        ),
        "Rights in one namespace reached another; credentials for Google Cloud did not end.",
        "There are no namespaces: a request that names one is refused; and no engine for Google Cloud",
    ),
    NotConcerned(
        (
            *("Vault CVE-2021-3282", "Vault CVE-2021-27668", "Vault CVE-2021-45042", "Vault CVE-2022-36129"),
            "Vault CVE-2024-8185",
        ),
        "Strangers removed or joined members of the storage cluster, or filled their memory.",
        "Nodes share a database and offer no endpoint to one another",
    ),
    NotConcerned(
        ("Vault CVE-2023-25000", "Vault CVE-2023-2197", "Vault CVE-2023-4680", "OpenBao GHSA-34fc-gh42-pj53"),
        "Shares of the seal key, or what it had sealed, could be learned by measuring, or by nonces of the caller.",
        "There are no shares and no recovery mode; AES-GCM seals under random nonces, and callers give none",
    ),
    NotConcerned(
        ("Vault CVE-2023-0620", "OpenBao CVE-2026-39946", "OpenBao GHSA-6mwx-4547-5vc9", "Vault CVE-2025-13357"),
        "Names became parts of SQL or LDAP statements, or an empty password passed.",
        "The statements of the stores are fixed, with values as parameters; there is no database engine and no LDAP",
    ),
    NotConcerned(
        (
            *("Vault CVE-2021-29653", "Vault CVE-2022-25243", "Vault CVE-2022-25244", "Vault CVE-2023-0665"),
            *("Vault CVE-2023-24999", "Vault CVE-2021-42135", "Vault CVE-2024-7594", "Vault CVE-2026-5052"),
            *("OpenBao CVE-2026-39396", "OpenBao CVE-2026-33757", "OpenBao GHSA-g892-p242-8g86"),
            "OpenBao GHSA-8w8f-r2xv-4q4j",
        ),
        "Faults of the engines PKI, SSH, transit and Google Cloud, of AppRole, of logins by OIDC, and of plugins.",
        "None of these exists here",
    ),
    NotConcerned(
        ("OpenBao CVE-2026-39388", "SPIRE: TLS session resumption"),
        "A token bound to a client certificate was renewed over a connection with another one.",
        "No token is bound to a client certificate",
    ),
    NotConcerned(
        ("OpenBao GHSA-444v-8vxr-p36h",),
        "The agent printed secrets when it could not write them.",
        "The agent's messages name files and fields, never values: its errors hold no answer of the service",
    ),
    NotConcerned(
        ("SPIRE 1.15.1: azure_imds", "SPIRE 1.14.6: aws_iid", "sigstore CVE-2026-39984"),
        "The certificate that was verified was not the one that had signed, or the content not the signed one.",
        "Attested documents are not accepted: identities are JWTs",
    ),
    NotConcerned(
        ("Teleport #62158",),
        "Intermediate certificates were fetched from a URL inside an attested document.",
        "Attested documents are not accepted; keys come from the tenant's discovery document on the login host only",
    ),
    NotConcerned(
        ("AWS and GCP auth CVE-2020-16250", "AWS and GCP auth CVE-2020-16251"),
        "The caller shaped the request, or the response, that proved its identity.",
        "The caller sends a signed token and no request to forward",
    ),
    NotConcerned(
        ("step-ca CVE-2025-44005", "step-ca CVE-2025-66406"),
        "Certificates were issued or revoked without authorisation by way of ACME, SCEP and SSH.",
        "No certificates are issued, and there is no ACME, SCEP or SSH",
    ),
    NotConcerned(
        ("Authlib and joserfc CVE-2024-37568", "Authlib CVE-2025-59420"),
        "An HMAC keyed with a public key passed, and critical header parameters were ignored.",
        "Neither library is used; the same tests run for our own verifier (PyJWT's row)",
    ),
)
