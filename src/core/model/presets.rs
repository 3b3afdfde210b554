//! The models shipped with the project: `model_presets/models/*.json`, one row each.

use super::{Model, parse_json};
use crate::units::Problem;
use serde_json::{Map, Value};

/// One shipped model.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Id in the Scenario document, and file name without `.json`.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Exact parameter count.
    pub parameters: u64,
    /// The preset document: id, name, hf_id, source, parameters, config.
    pub json: &'static str,
}

impl Preset {
    /// The preset document, parsed.
    pub fn document(&self) -> Result<Value, Problem> {
        parse_json("model.preset", self.json)
    }

    /// The model, read from the preset's config.
    pub fn model(&self) -> Result<Model, Problem> {
        self.model_with(&Map::new())
    }

    /// The model with fields of its config replaced.
    pub fn model_with(&self, overrides: &Map<String, Value>) -> Result<Model, Problem> {
        Model::from_config_with(self.id, &self.document()?["config"], overrides)
    }
}

/// The preset of that id.
pub fn preset(id: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.id == id)
}

const fn row(id: &'static str, name: &'static str, parameters: u64, json: &'static str) -> Preset {
    Preset { id, name, parameters, json }
}

macro_rules! file {
    ($id:literal) => {
        include_str!(concat!("../../../model_presets/models/", $id, ".json"))
    };
}

/// Every shipped model, sorted by id.
#[rustfmt::skip]
pub const PRESETS: &[Preset] = &[
    row("baichuan2-7b", "Baichuan2 7B", 7_505_973_248, file!("baichuan2-7b")),
    row("deepseek-r1", "DeepSeek-R1", 671_026_404_352, file!("deepseek-r1")),
    row("deepseek-v2", "DeepSeek-V2", 235_741_434_880, file!("deepseek-v2")),
    row("deepseek-v2-lite", "DeepSeek-V2 Lite", 15_706_484_224, file!("deepseek-v2-lite")),
    row("deepseek-v3", "DeepSeek-V3", 671_026_404_352, file!("deepseek-v3")),
    row("exaone-4.0-32b", "EXAONE 4.0 32B", 32_003_216_384, file!("exaone-4.0-32b")),
    row("falcon-40b", "Falcon 40B", 41_303_293_952, file!("falcon-40b")),
    row("falcon-7b", "Falcon 7B", 6_921_720_704, file!("falcon-7b")),
    row("flan-t5-xl", "FLAN-T5 XL", 2_783_959_040, file!("flan-t5-xl")),
    row("gemma-2-27b", "Gemma 2 27B", 27_227_128_320, file!("gemma-2-27b")),
    row("gemma-2-2b", "Gemma 2 2B", 2_614_341_888, file!("gemma-2-2b")),
    row("gemma-2-9b", "Gemma 2 9B", 9_241_705_984, file!("gemma-2-9b")),
    row("gemma-3-12b", "Gemma 3 12B", 12_187_325_040, file!("gemma-3-12b")),
    row("gemma-3-1b", "Gemma 3 1B", 999_885_952, file!("gemma-3-1b")),
    row("gemma-3-27b", "Gemma 3 27B", 27_432_406_640, file!("gemma-3-27b")),
    row("gemma-3-4b", "Gemma 3 4B", 4_300_079_472, file!("gemma-3-4b")),
    row("glm-4.5", "GLM-4.5", 352_797_814_784, file!("glm-4.5")),
    row("glm-4.5-air", "GLM-4.5 Air", 106_852_245_504, file!("glm-4.5-air")),
    row("gpt-oss-120b", "gpt-oss 120B", 116_829_156_672, file!("gpt-oss-120b")),
    row("gpt-oss-20b", "gpt-oss 20B", 20_914_757_184, file!("gpt-oss-20b")),
    row("granite-4.0-h-small", "Granite 4.0 H Small", 32_207_337_984, file!("granite-4.0-h-small")),
    row("granite-4.0-h-tiny", "Granite 4.0 H Tiny", 6_939_037_248, file!("granite-4.0-h-tiny")),
    row("internlm2-7b", "InternLM2 7B", 7_737_708_544, file!("internlm2-7b")),
    row("internlm3-8b", "InternLM3 8B", 8_804_241_408, file!("internlm3-8b")),
    row("jamba-1.5-mini", "Jamba 1.5 Mini", 51_570_323_328, file!("jamba-1.5-mini")),
    row("kimi-k2", "Kimi K2", 1_026_408_209_408, file!("kimi-k2")),
    row("llama-2-13b", "Llama 2 13B", 13_015_864_320, file!("llama-2-13b")),
    row("llama-2-70b", "Llama 2 70B", 68_976_648_192, file!("llama-2-70b")),
    row("llama-2-7b", "Llama 2 7B", 6_738_415_616, file!("llama-2-7b")),
    row("llama-3-8b", "Llama 3 8B", 8_030_261_248, file!("llama-3-8b")),
    row("llama-3.1-405b", "Llama 3.1 405B", 405_853_388_800, file!("llama-3.1-405b")),
    row("llama-3.1-70b", "Llama 3.1 70B", 70_553_706_496, file!("llama-3.1-70b")),
    row("llama-3.1-8b", "Llama 3.1 8B", 8_030_261_248, file!("llama-3.1-8b")),
    row("llama-3.2-1b", "Llama 3.2 1B", 1_235_814_400, file!("llama-3.2-1b")),
    row("llama-3.2-3b", "Llama 3.2 3B", 3_212_749_824, file!("llama-3.2-3b")),
    row("llama-3.3-70b", "Llama 3.3 70B", 70_553_706_496, file!("llama-3.3-70b")),
    row("llama-4-scout", "Llama 4 Scout 17B 16E", 108_641_793_536, file!("llama-4-scout")),
    row("llava-1.5-7b", "LLaVA 1.5 7B", 7_063_427_072, file!("llava-1.5-7b")),
    row("minimax-m2.5", "MiniMax M2.5", 228_689_748_992, file!("minimax-m2.5")),
    row("minimax-text-01", "MiniMax Text 01", 456_089_655_296, file!("minimax-text-01")),
    row("mistral-7b-v0.1", "Mistral 7B v0.1", 7_241_732_096, file!("mistral-7b-v0.1")),
    row("mistral-7b-v0.3", "Mistral 7B v0.3", 7_248_023_552, file!("mistral-7b-v0.3")),
    row("mistral-nemo-12b", "Mistral Nemo 12B", 12_247_782_400, file!("mistral-nemo-12b")),
    row("mistral-small-24b", "Mistral Small 24B", 23_572_403_200, file!("mistral-small-24b")),
    row("mixtral-8x22b", "Mixtral 8x22B", 140_620_634_112, file!("mixtral-8x22b")),
    row("mixtral-8x7b", "Mixtral 8x7B", 46_702_792_704, file!("mixtral-8x7b")),
    row("mpt-7b", "MPT 7B", 6_649_286_656, file!("mpt-7b")),
    row("nemotron-3-nano-30b-a3b", "Nemotron 3 Nano 30B A3B", 31_577_937_344, file!("nemotron-3-nano-30b-a3b")),
    row("nemotron-h-56b", "Nemotron-H 56B", 56_324_350_464, file!("nemotron-h-56b")),
    row("olmo-2-13b", "OLMo 2 13B", 13_716_198_400, file!("olmo-2-13b")),
    row("olmo-2-32b", "OLMo 2 32B", 32_234_279_936, file!("olmo-2-32b")),
    row("olmo-2-7b", "OLMo 2 7B", 7_298_617_344, file!("olmo-2-7b")),
    row("olmo-3.1-32b", "OLMo 3.1 32B", 32_233_522_176, file!("olmo-3.1-32b")),
    row("phi-3-mini-4k", "Phi-3 Mini 4K", 3_821_079_552, file!("phi-3-mini-4k")),
    row("phi-3.5-mini", "Phi-3.5 Mini", 3_821_079_552, file!("phi-3.5-mini")),
    row("phi-4", "Phi-4", 14_659_507_200, file!("phi-4")),
    row("phi-4-mini", "Phi-4 Mini", 3_836_021_760, file!("phi-4-mini")),
    row("qwen2.5-0.5b", "Qwen2.5 0.5B", 494_032_768, file!("qwen2.5-0.5b")),
    row("qwen2.5-1.5b", "Qwen2.5 1.5B", 1_543_714_304, file!("qwen2.5-1.5b")),
    row("qwen2.5-14b", "Qwen2.5 14B", 14_770_033_664, file!("qwen2.5-14b")),
    row("qwen2.5-32b", "Qwen2.5 32B", 32_763_876_352, file!("qwen2.5-32b")),
    row("qwen2.5-3b", "Qwen2.5 3B", 3_085_938_688, file!("qwen2.5-3b")),
    row("qwen2.5-72b", "Qwen2.5 72B", 72_706_203_648, file!("qwen2.5-72b")),
    row("qwen2.5-7b", "Qwen2.5 7B", 7_615_616_512, file!("qwen2.5-7b")),
    row("qwen2.5-vl-7b", "Qwen2.5-VL 7B", 8_292_166_656, file!("qwen2.5-vl-7b")),
    row("qwen3-0.6b", "Qwen3 0.6B", 596_049_920, file!("qwen3-0.6b")),
    row("qwen3-1.7b", "Qwen3 1.7B", 1_720_574_976, file!("qwen3-1.7b")),
    row("qwen3-14b", "Qwen3 14B", 14_768_307_200, file!("qwen3-14b")),
    row("qwen3-235b-a22b", "Qwen3 235B A22B", 235_093_634_560, file!("qwen3-235b-a22b")),
    row("qwen3-30b-a3b", "Qwen3 30B A3B", 30_532_122_624, file!("qwen3-30b-a3b")),
    row("qwen3-32b", "Qwen3 32B", 32_762_123_264, file!("qwen3-32b")),
    row("qwen3-4b", "Qwen3 4B", 4_022_468_096, file!("qwen3-4b")),
    row("qwen3-8b", "Qwen3 8B", 8_190_735_360, file!("qwen3-8b")),
    row("qwen3-coder-480b-a35b", "Qwen3 Coder 480B A35B", 480_154_875_392, file!("qwen3-coder-480b-a35b")),
    row("qwen3-next-80b-a3b", "Qwen3-Next 80B A3B", 79_674_391_296, file!("qwen3-next-80b-a3b")),
    row("starcoder2-15b", "StarCoder2 15B", 15_655_899_136, file!("starcoder2-15b")),
    row("starcoder2-7b", "StarCoder2 7B", 7_173_923_840, file!("starcoder2-7b")),
    row("t5-large", "T5 Large", 737_668_096, file!("t5-large")),
    row("whisper-large-v3", "Whisper Large v3", 1_543_490_560, file!("whisper-large-v3")),
    row("yi-34b", "Yi 34B", 34_388_917_248, file!("yi-34b")),
    row("yi-6b", "Yi 6B", 6_061_035_520, file!("yi-6b")),
];
