//! The command line's definition; help, completions and the manual page come from it.

use clap::{Args, Parser, Subcommand, ValueEnum};
use oom_ledger_core::text::Lang;
use std::path::PathBuf;

/// Where the GPU memory goes: estimate, explain and check.
#[derive(Parser)]
#[command(
    name = "oom-ledger",
    version,
    about,
    after_help = "Exit codes: 0 answered; 1 does not fit, under \
    --check; 2 the input cannot be used (the message names the field and what it accepts)."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// The memory ledger of a job: what it needs, term by term, and whether it fits
    Estimate(Box<EstimateArgs>),
    /// What a memory log shows: format, and for each card the shape of its curve and why
    Read(ReadArgs),
    /// What the tool knows: models, gpus, engines, quantizations, fields of the Scenario
    List {
        /// Which list
        what: List,
    },
    /// Completions for a shell, to standard output
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// The manual page, to standard output (read it with `man -l -`)
    Man {
        /// The page of one command
        command: Option<String>,
    },
}

/// The lists.
#[derive(Clone, Copy, ValueEnum)]
pub enum List {
    /// Shipped models: id, parameters, name
    Models,
    /// Known devices: id, device total, name
    Gpus,
    /// Engines: id, whether modelled, options
    Engines,
    /// Quantisation schemes of weights
    Quantizations,
    /// Fields of the Scenario document, for --set
    Fields,
}

/// How the answer is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned text
    Text,
    /// The result document
    Json,
    /// A report for a ticket
    Markdown,
    /// The result document on one line
    Jsonl,
}

/// Language of sentences.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// English
    En,
    /// Simplified Chinese
    Zh,
}

impl From<Language> for Lang {
    fn from(language: Language) -> Lang {
        match language {
            Language::En => Lang::En,
            Language::Zh => Lang::Zh,
        }
    }
}

/// `oom-ledger read`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  oom-ledger read gpu.csv\n  nvidia-smi | oom-ledger read - --format json"
)]
pub struct ReadArgs {
    /// Logs of nvidia-smi, gpustat, DCGM and others, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How the answer is written
    #[arg(long, value_enum, default_value = "text")]
    pub format: ReadFormat,
    /// Language of sentences
    #[arg(long, value_enum, default_value = "en")]
    pub lang: Language,
}

/// How `read` answers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReadFormat {
    /// Lines for a terminal
    Text,
    /// The result document; a list of them for several files
    Json,
    /// One result document a line
    Jsonl,
}

/// `oom-ledger estimate`.
#[derive(Args)]
#[command(after_help = "Examples:\n  oom-ledger estimate --model llama-3.1-8b --gpu h100-80gb\n  \
    oom-ledger estimate --model ./config.json --gpu 24GiB --quantization awq-int4 --max-model-len 8192\n  \
    oom-ledger estimate --model ./model-Q4_K_M.gguf --gpu 24GiB\n  \
    oom-ledger estimate scenario.json --set job.serve.sequences=16 --check\n  \
    oom-ledger estimate --model llama-3.1-8b --gpu h100-80gb --import ds_config.json --import training_args.json\n  \
    oom-ledger estimate --batch scenarios.jsonl > results.jsonl")]
pub struct EstimateArgs {
    /// A Scenario document, or - for standard input; flags replace single fields of it
    #[arg(conflicts_with_all = ["batch", "link"])]
    pub scenario: Option<PathBuf>,
    /// One Scenario per line, or - for standard input: one result per line, in order
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["link", "permalink"])]
    pub batch: Option<PathBuf>,
    /// A permalink of the page (the part behind #, or the whole address)
    #[arg(long)]
    pub link: Option<String>,
    /// Settings of another tool (DeepSpeed JSON, Accelerate YAML, TrainingArguments JSON), laid under the flags;
    /// what was read, and what not, is told on standard error or in the JSON under "imported"; repeatable
    #[arg(long, value_name = "FILE")]
    pub import: Vec<PathBuf>,
    /// How the answer is written
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Language of sentences
    #[arg(long, value_enum, default_value = "en")]
    pub lang: Language,
    /// Show how each figure was computed (text)
    #[arg(long)]
    pub workings: bool,
    /// Say what could be changed, the bytes each change frees and what it costs
    #[arg(long)]
    pub suggest: bool,
    /// Exit with 1 when the answer is "does not fit"
    #[arg(long)]
    pub check: bool,
    /// Print the permalink's fragment instead of the answer
    #[arg(long)]
    pub permalink: bool,
    /// Write to a new file; an existing one is never written over
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub fields: Fields,
}

/// Flags that set single fields.
#[derive(Args)]
#[command(next_help_heading = "Fields of the Scenario")]
pub struct Fields {
    /// Preset id, Hugging Face id of a preset, or path: a config.json, a .gguf, a .safetensors or its index, or
    /// their folder (only headers are read)
    #[arg(long)]
    pub model: Option<String>,
    /// Device id, or a device total such as 24GiB
    #[arg(long)]
    pub gpu: Option<String>,
    /// Devices in use [default: what the parallelism needs]
    #[arg(long)]
    pub gpu_count: Option<String>,
    /// vllm, transformers, …
    #[arg(long)]
    pub engine: Option<String>,
    /// Version as the engine's log prints it
    #[arg(long)]
    pub engine_version: Option<String>,
    /// dtype of unquantised weights: fp32, fp16, bf16
    #[arg(long)]
    pub dtype: Option<String>,
    /// Scheme of the weights, e.g. fp8, awq-int4, gguf:Q4_K_M
    #[arg(long)]
    pub quantization: Option<String>,
    /// auto, fp8, …
    #[arg(long)]
    pub kv_cache_dtype: Option<String>,
    /// Tokens of a KV block
    #[arg(long)]
    pub block_size: Option<String>,
    /// Tensor parallel degree
    #[arg(long)]
    pub tensor_parallel_size: Option<String>,
    /// Pipeline parallel degree
    #[arg(long)]
    pub pipeline_parallel_size: Option<String>,
    /// Data parallel degree
    #[arg(long)]
    pub data_parallel_size: Option<String>,
    /// Longest request, in tokens
    #[arg(long)]
    pub max_model_len: Option<String>,
    /// Share of device total that vLLM may use
    #[arg(long)]
    pub gpu_memory_utilization: Option<String>,
    /// Sequences scheduled at once
    #[arg(long)]
    pub max_num_seqs: Option<String>,
    /// Tokens of one scheduler step
    #[arg(long)]
    pub max_num_batched_tokens: Option<String>,
    /// No CUDA graphs
    #[arg(long)]
    pub enforce_eager: bool,
    /// eager, sdpa, flash (transformers)
    #[arg(long)]
    pub attention: Option<String>,
    /// last, all (transformers)
    #[arg(long)]
    pub logits: Option<String>,
    /// dynamic, static, sliding, none (transformers)
    #[arg(long)]
    pub cache: Option<String>,
    /// A mask with at least one padded position (transformers)
    #[arg(long)]
    pub padding_mask: bool,
    /// Sequences alive at once
    #[arg(long)]
    pub sequences: Option<String>,
    /// Prompt tokens of each sequence
    #[arg(long)]
    pub prompt_tokens: Option<String>,
    /// New tokens of each sequence
    #[arg(long)]
    pub new_tokens: Option<String>,
    /// Any field by its path, e.g. job.serve.ubatch=512 (see `oom-ledger list fields`)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
}

impl Fields {
    /// Every field that a flag sets, as path and text; model and GPU are looked up elsewhere.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        let flag = |on: bool| on.then_some("true");
        let named = [
            ("device.count", self.gpu_count.as_deref()),
            ("job.serve.engine", self.engine.as_deref()),
            ("job.serve.engine_version", self.engine_version.as_deref()),
            ("weights.dtype", self.dtype.as_deref()),
            ("weights.quantization", self.quantization.as_deref()),
            ("job.serve.kv_cache_dtype", self.kv_cache_dtype.as_deref()),
            ("job.serve.block_size", self.block_size.as_deref()),
            ("parallel.tensor", self.tensor_parallel_size.as_deref()),
            ("parallel.pipeline", self.pipeline_parallel_size.as_deref()),
            ("parallel.data", self.data_parallel_size.as_deref()),
            ("job.serve.max_model_len", self.max_model_len.as_deref()),
            ("job.serve.gpu_memory_utilization", self.gpu_memory_utilization.as_deref()),
            ("job.serve.max_num_seqs", self.max_num_seqs.as_deref()),
            ("job.serve.max_num_batched_tokens", self.max_num_batched_tokens.as_deref()),
            ("job.serve.enforce_eager", flag(self.enforce_eager)),
            ("job.serve.attention", self.attention.as_deref()),
            ("job.serve.logits", self.logits.as_deref()),
            ("job.serve.cache", self.cache.as_deref()),
            ("job.serve.padding_mask", flag(self.padding_mask)),
            ("job.serve.sequences", self.sequences.as_deref()),
            ("job.serve.prompt_tokens", self.prompt_tokens.as_deref()),
            ("job.serve.new_tokens", self.new_tokens.as_deref()),
        ];
        named.into_iter().filter_map(|(path, text)| Some((path, text?))).collect()
    }
}
