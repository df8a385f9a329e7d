use proptest::prelude::*;

use super::*;

/// Conceals a text, and checks that concealing it again changes nothing.
fn of(text: &str) -> String {
    let shown = conceal(text).into_owned();
    assert_eq!(conceal(&shown), shown, "{text}");
    shown
}

#[test]
fn names_of_secrets() {
    for name in [
        "NVIDIA_API_KEY",
        "TORCH_HUB_TOKEN",
        "CUDA_PASSWORD",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "MYSQL_PWD",
        "DB_PASS",
        "DBPASSWORD",
        "GITHUB_PAT",
        "_authToken",
        "AccountKey",
        "api-key",
        "X-Amz-Signature",
        "token",
        "auth",
        "CUDA_LICENSE_PASSWORD1",
        "HF_TOKEN_2",
        "NGC_API_KEY2",
        "PASSWORDS",
        "OPENAIAPIKEY",
        "WANDB_KEY",
        "wandb.api_key",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "private_key",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "NCCL_IB_PKEY",
        "PATH",
        "PWD",
        "OLDPWD",
        "TOKENIZERS_PARALLELISM",
        "MAX_TOKENS",
        "max-new-tokens",
        "KEY",
        "key",
        "IBVERBS_PRIVATE_34",
        "password-stdin",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "author",
        "pwd",
        "eos-token",
        "pad_token_id",
        "BOS_TOKEN_ID",
        "NUM_TOKEN",
        "image-token-index",
        "moe-token-dropping",
        "trainer.token_budget",
        "model.key_dim",
        "num_key_value_heads",
        "data.sort_key",
        "image_key",
        "text-key",
        "PUBLIC_KEY",
        "GPG_KEY",
        "KEY_SERVER",
        "OLD_PWD",
        "PRIVATE_REGISTRY",
        "SSH_AUTH_SOCK",
        "AUTH_URL",
        "N_PASS",
        "two-pass",
        "SIG_BLOCK",
        "USE_AUTH",
        "with-private-libs",
        "StrictHostKeyChecking",
        "disabled-password",
        "compass",
        "",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn secrets_are_concealed_in_any_syntax() {
    for (text, expected) in [
        ("RUN |1 HF_TOKEN=abc /bin/sh -c pip install x", "RUN |1 HF_TOKEN=<secret> /bin/sh -c pip install x"),
        ("ENV A=1 HF_TOKEN=\"a b\" C=2", "ENV A=1 HF_TOKEN=\"<secret>\" C=2"),
        ("ENV HF_TOKEN abc", "ENV HF_TOKEN <secret>"),
        ("export HF_TOKEN='a b'; python x", "export HF_TOKEN='<secret>'; python x"),
        ("x --token=abc --verbose --api-key abc y", "x --token=<secret> --verbose --api-key <secret> y"),
        (r#"CMD ["python" "--api-key" "abc"]"#, r#"CMD ["python" "--api-key" "<secret>"]"#),
        (r#"["--password","a b","-v"]"#, r#"["--password","<secret>","-v"]"#),
        (r#"{"HF_TOKEN": "abc", "a": "b"}"#, r#"{"HF_TOKEN": "<secret>", "a": "b"}"#),
        (r#"{"why":"{\"api_key\":\"abc\"}"}"#, r#"{"why":"{\"api_key\":\"<secret>\"}"}"#),
        (r#"{"why":"TOKEN=abc\n"}"#, r#"{"why":"TOKEN=<secret>\n"}"#),
        ("x --token \\\n  abc \\\n  y", "x --token \\\n  <secret> \\\n  y"),
        ("token = \"abc\"", "token = \"<secret>\""),
        ("password: abcdef12", "password: <secret>"),
        ("curl -H 'Authorization: Bearer abc' u", "curl -H 'Authorization: Bearer <secret>' u"),
        ("curl -H \"X-Api-Key: abc\" u", "curl -H \"X-Api-Key: <secret>\" u"),
        ("curl -u me:abc https://x", "curl -u me:<secret> https://x"),
        ("docker login -u me -p abc r.io", "docker login -u me -p <secret> r.io"),
        ("wandb login abc", "wandb login <secret>"),
        ("machine x login y password abc", "machine x login y password <secret>"),
        ("git clone https://me:abc@x/y", "git clone https://<secret>@x/y"),
        ("pip install git+https://abc@x/y", "pip install git+https://<secret>@x/y"),
        ("postgres://me:a@b@x/y", "postgres://<secret>@x/y"),
        ("https://x/y?a=1&sig=abc&b=2", "https://x/y?a=1&sig=<secret>&b=2"),
        ("U=https://x?token=abc", "U=https://x?token=<secret>"),
        ("echo ghp_0123456789abcdefghij | x", "echo <secret> | x"),
        ("echo sk-proj-0123456789abcdefghij", "echo <secret>"),
        ("AKIAIOSFODNN7EXAMPLE", "<secret>"),
        ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc y", "x <secret> y"),
        ("TOKEN=abc\"def\" x", "TOKEN=<secret> x"),
        ("TOKEN=a\\ b x", "TOKEN=<secret> x"),
        ("TOKEN=`cat /run/x` y", "TOKEN=<secret> y"),
        ("ENV CREDENTIAL_JSON={\"a\":\"abc\"}", "ENV CREDENTIAL_JSON=<secret>"),
        ("os.environ['HF_TOKEN'] = 'abc'", "os.environ['HF_TOKEN'] = '<secret>'"),
        ("x --wandb.api_key abc", "x --wandb.api_key <secret>"),
        ("-H 'Authorization: ApiKey abc'", "-H 'Authorization: ApiKey <secret>'"),
        ("https://x.com?mail=a@b.c", "https://x.com?mail=a@b.c"),
        ("TOKEN=\"cut off", "TOKEN=\"<secret>"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b", "a <secret> b"),
    ] {
        assert_eq!(of(text), expected, "{text}");
    }
}

#[test]
fn json_stays_json() {
    for (line, expected) in [
        (r#"{"b":"TOKEN='x","a":"y'"}"#, r#"{"a":"y'","b":"TOKEN='<secret>"}"#),
        (r#"{"environment":{"API_KEY":"x","A":"y"}}"#, r#"{"environment":{"A":"y","API_KEY":"<secret>"}}"#),
        (
            r#"[{"name":"HF_TOKEN","value":"x"},["--token","x"],{"token":1}]"#,
            r#"[{"name":"HF_TOKEN","value":"<secret>"},["--token","<secret>"],{"token":1}]"#,
        ),
        (r#"{"z":"no secret","a":1.50}"#, r#"{"z":"no secret","a":1.50}"#),
        ("{\"API_KEY\":\"x", "{\"API_KEY\":\"<secret>"),
    ] {
        assert_eq!(conceal_line(line), expected, "{line}");
    }
}

proptest! {
    #[test]
    fn any_text_is_concealed_without_damage(text in "[a \"'\\\\=:@/$\\n{}é-]{0,12}(TOKEN|token|PWD|curl -u a|x://)[a \"'\\\\=:@/$\\n{}é-]{0,20}") {
        let _ = conceal(&text);
        let line = serde_json::json!({"why": text, "api_key": text, "words": ["--token", text]}).to_string();
        let shown = conceal_line(&line).into_owned();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{line}: {shown}");
    }
}

#[test]
fn what_is_no_secret_stays() {
    for text in [
        "HF_TOKEN=$HF_TOKEN python x --token ${HF_TOKEN} --password-stdin r.io",
        "TOKEN=$(cat /run/secrets/token) x",
        "RUN --mount=type=secret,id=hf_token pip install x",
        "docker://registry.example/train@sha256:00",
        "docker://train@sha256:00 ssh://me@box git+ssh://git@x/y",
        "https://${USER}:${TOKEN}@x",
        "NCCL_IB_PKEY=0xffff --key x --pwd /work --max-tokens 12 --auth",
        "libx.so needs IBVERBS_PRIVATE_34: libmlx5.so.1.24",
        "the key 'password': expected a word",
        "pip install sk-learn-contrib-something token==1.0",
        "bearer of news: a token: it is absent",
        "AUTH=true",
        "apt-get install docker-credential-helpers=0.6.4 pass=1.7.4-6 libsecret-1-0=0.20",
        "pip install sk-learn-extra-utils-v2 mysqlclient -parallel",
        "x --eos-token </s> --pad-token x --text-key text",
        "HF_TOKEN=${1:-} x ${HF_TOKEN:?missing}",
        "docker build --secret id=hf,src=x . https://git@github.com/a/b",
    ] {
        assert_eq!(of(text), text);
    }
}

#[test]
fn values_of_facts_are_concealed() {
    let words = |words: &[&str]| Value::from(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let command = words(&["x", "--api-key", "abc", "--token=abc", "-v", "y"]);
    assert_eq!(concealed(&command), Some(words(&["x", "--api-key", "<secret>", "--token=<secret>", "-v", "y"])));
    assert_eq!(concealed(&words(&["--auth", "-v", "HF_TOKEN"])), None);
    for (command, expected) in [
        (&["curl", "-u", "bob:abc", "https://x"][..], &["curl", "-u", "bob:<secret>", "https://x"][..]),
        (&["/usr/bin/wandb", "login", "abc"], &["/usr/bin/wandb", "login", "<secret>"]),
        (&["docker", "login", "-u", "a", "-p", "abc", "r"], &["docker", "login", "-u", "a", "-p", "<secret>", "r"]),
        (&["env", "HF_TOKEN=a b abc"], &["env", "HF_TOKEN=<secret>"]),
        (&["x", "--api-key=a b abc"], &["x", "--api-key=<secret>"]),
    ] {
        assert_eq!(concealed(&words(command)), Some(words(expected)), "{command:?}");
    }
    let map = |pairs: &[(&str, &str)]| {
        Value::Map(pairs.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect())
    };
    assert_eq!(concealed(&map(&[("a", "b"), ("api_key", "c")])), Some(map(&[("a", "b"), ("api_key", "<secret>")])));
    let record = Value::List(vec![map(&[("name", "HF_TOKEN"), ("value", "abc")])]);
    assert_eq!(concealed(&record), Some(Value::List(vec![map(&[("name", "HF_TOKEN"), ("value", "<secret>")])])));
}
