-- The annotations of the plugin, read from its source: which public functions there are, what they take and return.
-- annotations_test.lua holds the source to them; helper.lua holds every call in the tests to them.
local M = { root = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h") }

---@class pillion.test.Function
---@field file string
---@field line integer from 1
---@field name string as written: M.open, Session:add
---@field params string[] as declared, without self
---@field documented {name: string, type: string}[] the @param lines
---@field comment boolean a line of words or an @annotation stands above it
---@field returns boolean it returns a value
---@field returns_documented boolean

local function text(node, source)
  return vim.treesitter.get_node_text(node, source)
end

-- Whether a function's own body, nested functions aside, returns a value.
local function returns_value(node)
  for child in node:iter_children() do
    local kind = child:type()
    if kind == "return_statement" and child:named_child_count() > 0 then
      local value = child:named_child(0)
      -- `return f()` at the end of a branch is how a call is made last here; it promises nothing.
      local first = value:type() == "expression_list" and value:named_child(0) or value
      if first and first:type() ~= "function_call" then
        return true
      end
    elseif kind ~= "function_declaration" and kind ~= "function_definition" and returns_value(child) then
      return true
    end
  end
  return false
end

---@param file string
---@return pillion.test.Function[]
function M.functions(file)
  local f = assert(io.open(file))
  local source = f:read("*a")
  f:close()
  local lines = vim.split(source, "\n", { plain = true })
  local tree = vim.treesitter.get_string_parser(source, "lua"):parse()[1]
  local out = {}
  local function visit(node)
    for child in node:iter_children() do
      if child:type() == "function_declaration" then
        local name = child:field("name")[1]
        local written = name and text(name, source) or ""
        if written:find("[.:]") and not written:find("%._") then
          local fn = { file = file, line = child:start() + 1, name = written, params = {}, documented = {}, comment = false }
          for p in child:field("parameters")[1]:iter_children() do
            if p:named() then
              fn.params[#fn.params + 1] = text(p, source)
            end
          end
          fn.returns, fn.returns_documented = returns_value(child), false
          local at = fn.line - 1
          while at >= 1 and lines[at]:match("^%s*%-%-") do
            local param, kind = lines[at]:match("^%s*%-%-%-@param%s+([%w_%.]+%??)%s+(%S.*)$")
            if param then
              table.insert(fn.documented, 1, { name = param, type = kind })
            end
            fn.vararg = fn.vararg or lines[at]:match("^%s*%-%-%-@vararg") ~= nil
            fn.returns_documented = fn.returns_documented or lines[at]:match("^%s*%-%-%-@return") ~= nil
            fn.comment = true
            at = at - 1
          end
          out[#out + 1] = fn
        end
      end
      visit(child)
    end
  end
  visit(tree:root())
  return out
end

---@return string[]
function M.files()
  local out = {}
  for _, file in ipairs(vim.fn.glob(M.root .. "/lua/pillion/*.lua", true, true)) do
    if not file:match("/protocol%.lua$") then -- generated
      out[#out + 1] = file
    end
  end
  return out
end

-- What is wrong with one function's annotations; nil when they fit.
---@param fn pillion.test.Function
---@return string?
function M.fault(fn)
  if not fn.comment then
    return "has no comment"
  end
  local want = {}
  for _, p in ipairs(fn.params) do
    if p:sub(1, 1) ~= "_" and p ~= "..." then
      want[#want + 1] = p
    end
  end
  local have = vim.tbl_map(function(d)
    return (d.name:gsub("%?$", ""))
  end, fn.documented)
  have = vim.tbl_filter(function(name)
    return name ~= "..."
  end, have)
  if not vim.deep_equal(want, have) then
    return ("takes (%s), and its @param lines say (%s)"):format(table.concat(want, ", "), table.concat(have, ", "))
  end
  if fn.returns and not fn.returns_documented then
    return "returns a value and has no @return"
  end
end

local plain = { string = true, boolean = true, table = true, thread = true, userdata = true, ["nil"] = true, number = true }

-- Whether a value may be what an annotation says. Classes are tables; what is not understood is taken for true.
---@param value any
---@param kind string
---@return boolean
function M.fits(value, kind)
  kind = kind:gsub("%b{}", "table"):gsub("%b<>", "")
  if kind:match("^fun") then
    return type(value) == "function" or type(value) == "table"
  end
  kind = kind:match("^(%S+)") or kind
  for one in (kind .. "|"):gmatch("(.-)|") do
    local optional = one:sub(-1) == "?"
    one = one:gsub("%?$", "")
    local literal = one:match('^"(.*)"$')
    if optional and value == nil or one == "any" or literal == value and literal then
      return true
    elseif one == "integer" then
      if type(value) == "number" and value % 1 == 0 then
        return true
      end
    elseif one:match("%[%]$") or one:match("^pillion%.") or one == "table" then
      if type(value) == "table" or one == "pillion.Callback" or one == "pillion.Reply" then
        return true
      end
    elseif plain[one] then
      if type(value) == one then
        return true
      end
    elseif not literal then
      return true
    end
  end
  return false
end

-- Makes every public function of the plugin's modules check its arguments against its annotations.
function M.enforce()
  local documented = {}
  for _, file in ipairs(M.files()) do
    local module = "pillion." .. vim.fn.fnamemodify(file, ":t:r")
    documented[module == "pillion.init" and "pillion" or module] = M.functions(file)
  end
  table.insert(package.loaders, 2, function(name)
    local list = documented[name]
    if not list then
      return nil
    end
    local file = M.root .. "/lua/" .. (name == "pillion" and "pillion/init" or name:gsub("%.", "/")) .. ".lua"
    return function(...)
      local module = assert(loadfile(file))(...)
      for _, fn in ipairs(list) do
        local short = fn.name:match("^M%.([%w_]+)$")
        local original = type(module) == "table" and short and rawget(module, short)
        if type(original) == "function" then
          module[short] = function(...)
            for i, d in ipairs(fn.documented) do
              local kind = d.type
              local value = select(i, ...)
              if not (d.name:sub(-1) == "?" and value == nil) and not M.fits(value, kind) then
                error(("%s:%d: %s: argument %s is %s, and its annotation says %s"):format(fn.file, fn.line, fn.name, d.name, vim.inspect(value):sub(1, 80), kind), 2)
              end
            end
            return original(...)
          end
        end
      end
      return module
    end
  end)
end

return M
